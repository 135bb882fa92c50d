//! Names of iSCSI initiators and targets: `iqn.2001-04.com.example:disk1`, `eui.` or `naa.` and a
//! number.

use coracle_api::names::Messages;

/// What is wrong with such a name.
pub(super) fn wrong(name: &str) -> Messages {
    let good = match name.get(..3) {
        Some("iqn") => is_qualified(name),
        Some("eui") => is_number(name, 16),
        Some("naa") => is_number(name, 32),
        _ => return vec!["must be valid format starting with iqn, eui, or naa"],
    };
    if good {
        Messages::new()
    } else {
        vec!["must be valid format"]
    }
}

/// One character after the three letters, then the given number of letters and digits.
fn is_number(name: &str, digits: usize) -> bool {
    let mut rest = name[3..].chars();
    rest.next().is_some_and(|separator| separator != '\n')
        && rest.clone().count() == digits
        && rest.all(|digit| digit.is_ascii_alphanumeric())
}

/// Contains `iqn.`, a year and a month, the domain reversed, and the name in that domain at the
/// end.
fn is_qualified(name: &str) -> bool {
    name.match_indices("iqn.").any(|(start, found)| {
        let rest = &name[start + found.len()..];
        let date = rest.get(..8).is_some_and(|date| {
            date.bytes().enumerate().all(|(place, byte)| match place {
                4 => byte == b'-',
                7 => byte == b'.',
                _ => byte.is_ascii_digit(),
            })
        });

        let Some((domain, own)) = rest
            .get(8..)
            .and_then(|rest| rest.split_once(':'))
            .filter(|_| date)
        else {
            return false;
        };

        let in_domain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
        let in_own = |letter: char| {
            !matches!(
                letter,
                ',' | ';' | '*' | '&' | '$' | '|' | ' ' | '\t' | '\n' | '\r' | '\x0c'
            )
        };

        !domain.is_empty()
            && domain.bytes().all(in_domain)
            && !own.is_empty()
            && own.chars().all(in_own)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_one_of_three_forms() {
        let check = |name: &str, good: bool| assert_eq!(wrong(name).is_empty(), good, "{name}");
        check("iqn.2001-04.com.example:storage:disk1", true);
        check("iqn.2001-04.com.example", false);
        check("iqn.2001-4.com.example:x", false);
        check("iqn.2001-04.com.example:a b", false);
        check("eui.0123456789abcdef", true);
        check("eui.0123456789abcde", false);
        check("naa.0123456789abcdef0123456789abcdef", true);
        check("naa.0123456789abcdef", false);
        check("x", false);
    }
}
