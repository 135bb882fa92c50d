//! Device rules: which devices a group may open. Everything is denied unless a rule allows it.
//!
//! Version 1 takes the rules as text. Version 2 takes a BPF program, which is assembled here: it
//! compares the request with each rule in turn.

use crate::sys::Instruction;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceKind {
    Any,
    Character,
    Block,
}

/// Read, write, mknod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    pub read: bool,
    pub write: bool,
    pub make: bool,
}

impl Access {
    pub const ALL: Self = Self {
        read: true,
        write: true,
        make: true,
    };
    pub const MAKE: Self = Self {
        read: false,
        write: false,
        make: true,
    };

    /// Parses `rwm`.
    pub fn parse(text: &str) -> Self {
        Self {
            read: text.contains('r'),
            write: text.contains('w'),
            make: text.contains('m'),
        }
    }
}

/// A class of devices that may be used. No number means any number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceRule {
    pub kind: DeviceKind,
    pub major: Option<u32>,
    pub minor: Option<u32>,
    pub access: Access,
}

impl DeviceRule {
    /// Every device.
    pub const ALL: Self = Self {
        kind: DeviceKind::Any,
        major: None,
        minor: None,
        access: Access::ALL,
    };

    pub(crate) fn v1(&self) -> String {
        let kind = match self.kind {
            DeviceKind::Any => 'a',
            DeviceKind::Character => 'c',
            DeviceKind::Block => 'b',
        };

        let number =
            |number: Option<u32>| number.map_or("*".to_owned(), |number| number.to_string());
        let letters = [
            (self.access.read, 'r'),
            (self.access.write, 'w'),
            (self.access.make, 'm'),
        ];

        let access: String = letters
            .iter()
            .filter(|(may, _)| *may)
            .map(|(_, letter)| letter)
            .collect();

        format!(
            "{kind} {}:{} {access}",
            number(self.major),
            number(self.minor)
        )
    }
}

// The kernel's constants: BPF_DEVCG_DEV_* and BPF_DEVCG_ACC_*.
const BLOCK: i32 = 1;
const CHARACTER: i32 = 2;
const MAKE: i32 = 1;
const READ: i32 = 2;
const WRITE: i32 = 4;

/// The program for these rules. Its context has the device type (lower half) and the access (upper
/// half) in a word, then the major and the minor number; it returns 1 to allow.
pub(crate) fn program(rules: &[DeviceRule]) -> Vec<Instruction> {
    let (asked, kind, access, major, minor, scratch) = (1, 2, 3, 4, 5, 6);
    let mut program = vec![
        Instruction::load(kind, asked, 0),
        Instruction::and(kind, 0xffff),
        Instruction::load(access, asked, 0),
        Instruction::shift_right(access, 16),
        Instruction::load(major, asked, 4),
        Instruction::load(minor, asked, 8),
    ];

    for rule in rules {
        let mut checks: Vec<Vec<Instruction>> = Vec::new();
        let unequal = |register, value| vec![Instruction::jump_unless_equal(register, value)];
        match rule.kind {
            DeviceKind::Any => {}
            DeviceKind::Block => checks.push(unequal(kind, BLOCK)),
            DeviceKind::Character => checks.push(unequal(kind, CHARACTER)),
        }

        if rule.access != Access::ALL {
            let allowed = [
                (rule.access.read, READ),
                (rule.access.write, WRITE),
                (rule.access.make, MAKE),
            ];

            let allowed: i32 = allowed
                .iter()
                .filter(|(may, _)| *may)
                .map(|(_, bit)| bit)
                .sum();

            checks.push(vec![
                Instruction::copy(scratch, access),
                Instruction::and(scratch, !allowed & (READ | WRITE | MAKE)),
                Instruction::jump_unless_equal(scratch, 0),
            ]);
        }

        checks.extend(
            rule.major
                .map(|number| unequal(major, number.cast_signed())),
        );

        checks.extend(
            rule.minor
                .map(|number| unequal(minor, number.cast_signed())),
        );

        let (yes, always) = (
            [Instruction::set(0, 1), Instruction::exit()],
            checks.is_empty(),
        );
        let whole: Vec<Instruction> = checks.into_iter().flatten().chain(yes).collect();
        let length = whole.len();

        // If a comparison fails, continue after this rule.
        program.extend(
            whole
                .into_iter()
                .enumerate()
                .map(|(at, one)| one.landing(length - at - 1)),
        );

        if always {
            // The kernel rejects a program with unreachable instructions.
            return program;
        }
    }

    program.extend([Instruction::set(0, 0), Instruction::exit()]);

    program
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_written_as_version_one_reads_them() {
        assert_eq!(DeviceRule::ALL.v1(), "a *:* rwm");
        let null = DeviceRule {
            kind: DeviceKind::Character,
            major: Some(1),
            minor: Some(3),
            access: Access::parse("rw"),
        };
        assert_eq!(null.v1(), "c 1:3 rw");
    }

    #[test]
    fn the_kernel_accepts_the_program() {
        let rules = [
            DeviceRule {
                kind: DeviceKind::Character,
                major: Some(1),
                minor: Some(3),
                access: Access::ALL,
            },
            DeviceRule {
                kind: DeviceKind::Block,
                major: None,
                minor: None,
                access: Access::MAKE,
            },
        ];
        crate::sys::load_device_program(&program(&rules)).unwrap();

        crate::sys::load_device_program(&program(&[DeviceRule::ALL])).unwrap();
        crate::sys::load_device_program(&program(&[])).unwrap();
    }
}
