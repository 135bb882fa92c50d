//! Which type can stand for which, and what variables stand for.

use std::cell::Cell;
use std::sync::Arc;

use crate::types::{Type, same};

/// How large a type may be, counted in the types it is made of. `[1].map(a, {a: a}).map(b, {b: b})`
/// and so on doubles it with each call.
const LARGEST: usize = 1_000;

/// How many types may be compared or built in one check.
const MOST_STEPS: usize = 20_000_000;

/// What the variables of one check stand for.
#[derive(Debug, Default)]
pub(super) struct Unifier {
    bound: Vec<Option<Type>>,
    steps: Cell<usize>,
    too_large: Cell<bool>,
    /// What was bound before, to undo an assignment that failed in the middle.
    undo: Vec<(u32, Option<Type>)>,
}

impl Unifier {
    pub(super) fn new_variable(&mut self) -> Type {
        self.bound.push(None);
        Type::Variable(u32::try_from(self.bound.len() - 1).expect("a tree is limited"))
    }

    /// Whether types became too large to go on. What is found then means nothing.
    pub(super) fn exhausted(&self) -> bool {
        self.too_large.get()
    }

    fn count(&self) {
        self.steps.set(self.steps.get() + 1);
        if self.steps.get() > MOST_STEPS {
            self.too_large.set(true);
        }
    }

    /// Notes if `of` is too large.
    pub(super) fn measure(&self, of: &Type) {
        let mut left = LARGEST;
        if !is_within(of, &mut left) {
            self.too_large.set(true);
        }
    }

    /// Whether `from` fits `to`; variables are bound if it does.
    pub(super) fn assign(&mut self, to: &Type, from: &Type) -> bool {
        self.all_or_nothing(|unifier| unifier.fits(to, from))
    }

    /// The same for several.
    pub(super) fn assign_all(&mut self, to: &[Type], from: &[Type]) -> bool {
        to.len() == from.len()
            && self.all_or_nothing(|unifier| {
                to.iter().zip(from).all(|(to, from)| unifier.fits(to, from))
            })
    }

    fn all_or_nothing(&mut self, fits: impl FnOnce(&mut Self) -> bool) -> bool {
        self.undo.clear();
        let result = fits(self);
        if !result {
            while let Some((variable, before)) = self.undo.pop() {
                self.bound[variable as usize] = before;
            }
        }
        result
    }

    fn binding(&self, of: &Type) -> Option<&Type> {
        match of {
            Type::Variable(number) => self.bound.get(*number as usize)?.as_ref(),
            _ => None,
        }
    }

    fn bind(&mut self, variable: &Type, to: Type) {
        if let Type::Variable(number) = variable {
            let before = self.bound[*number as usize].replace(to);
            self.undo.push((*number, before));
        }
    }

    fn fits(&mut self, to: &Type, from: &Type) -> bool {
        self.count();
        if self.exhausted() {
            return false;
        }
        if is_variable(from) {
            match self.stands_for(to, from) {
                Binding::Fits => return true,
                Binding::Differs => return false,
                Binding::Cyclic => {}
            }
        }
        if is_variable(to) {
            return matches!(self.stands_for(from, to), Binding::Fits);
        }
        if is_dyn_or_error(to) || is_dyn_or_error(from) {
            return true;
        }
        match (to, from) {
            (Type::Null, other) | (other, Type::Null) => can_be_null(other),
            (Type::Type(_), Type::Type(_)) => true,
            (Type::List(to), Type::List(from)) | (Type::Optional(to), Type::Optional(from)) => {
                self.fits(to, from)
            }
            (Type::Map(to_key, to_value), Type::Map(key, value)) => {
                self.fits(to_key, key) && self.fits(to_value, value)
            }
            _ => same(to, from),
        }
    }

    /// Whether `variable` can stand for `of`. Of two types that fit, the more general wins.
    fn stands_for(&mut self, of: &Type, variable: &Type) -> Binding {
        if of == variable {
            return Binding::Fits;
        }
        if let Some(bound) = self.binding(variable).cloned() {
            if same(of, &bound) {
                return Binding::Fits;
            }
            if !self.fits(of, &bound) {
                return Binding::Differs;
            }
            let general = most_general(of.clone(), bound);
            if self.is_free_of(variable, &general) {
                self.bind(variable, general);
            }
            return Binding::Fits;
        }
        if !self.is_free_of(variable, of) {
            return Binding::Cyclic;
        }
        self.bind(variable, of.clone());
        Binding::Fits
    }

    /// Whether `variable` does not occur in `of`.
    fn is_free_of(&self, variable: &Type, of: &Type) -> bool {
        self.count();
        if self.exhausted() {
            return false;
        }
        if variable == of {
            return false;
        }
        if is_variable(of) {
            return self
                .binding(of)
                .is_none_or(|bound| self.is_free_of(variable, bound));
        }
        let mut parameters = of.parameters().into_iter().flatten();
        parameters.all(|parameter| self.is_free_of(variable, parameter))
    }

    /// The type with what its variables stand for.
    pub(super) fn substitute(&self, of: &Type) -> Type {
        self.replace(of, false, &Cell::new(LARGEST))
    }

    /// The same, with `dyn` for what stands for nothing.
    pub(super) fn finish(&self, of: &Type) -> Type {
        self.replace(of, true, &Cell::new(LARGEST))
    }

    fn replace(&self, of: &Type, finish: bool, left: &Cell<usize>) -> Type {
        if left.get() == 0 {
            self.too_large.set(true);
            return Type::Error;
        }
        left.set(left.get() - 1);
        if let Some(bound) = self.binding(of) {
            return self.replace(bound, finish, left);
        }
        match of {
            Type::Param(_) | Type::Variable(_) if finish => Type::Dyn,
            _ => rebuild(of, |parameter| self.replace(parameter, finish, left)),
        }
    }
}

fn is_within(of: &Type, left: &mut usize) -> bool {
    if *left == 0 {
        return false;
    }
    *left -= 1;
    let mut parameters = of.parameters().into_iter().flatten();
    parameters.all(|parameter| is_within(parameter, left))
}

/// Whether a variable can stand for a type.
enum Binding {
    Fits,
    /// It stands for another one.
    Differs,
    /// It occurs in it.
    Cyclic,
}

fn rebuild(of: &Type, replace: impl Fn(&Type) -> Type) -> Type {
    let part = |part: &Arc<Type>| Arc::new(replace(part));
    match of {
        Type::List(element) => Type::List(part(element)),
        Type::Map(key, value) => Type::Map(part(key), part(value)),
        Type::Optional(value) => Type::Optional(part(value)),
        Type::Type(Some(of)) => Type::Type(Some(part(of))),
        _ => of.clone(),
    }
}

/// A signature's type with `fresh` variables in the place of its own.
pub(super) fn instantiate(of: &Type, variables: &[Type], fresh: &[Type]) -> Type {
    match variables.iter().position(|variable| variable == of) {
        Some(index) => fresh[index].clone(),
        None => rebuild(of, |parameter| instantiate(parameter, variables, fresh)),
    }
}

fn is_variable(of: &Type) -> bool {
    matches!(of, Type::Variable(_) | Type::Param(_))
}

fn is_dyn(of: &Type) -> bool {
    matches!(of, Type::Dyn | Type::Any)
}

fn is_dyn_or_error(of: &Type) -> bool {
    is_dyn(of) || *of == Type::Error
}

fn can_be_null(of: &Type) -> bool {
    matches!(
        of,
        Type::Null
            | Type::Optional(_)
            | Type::Opaque(_)
            | Type::Object(_)
            | Type::Any
            | Type::Duration
            | Type::Timestamp
            | Type::Wrapper(_)
    )
}

/// The more general of two types that fit each other.
pub(super) fn most_general(one: Type, other: Type) -> Type {
    if is_as_general(&one, &other) {
        one
    } else {
        other
    }
}

fn is_as_general(one: &Type, other: &Type) -> bool {
    if is_dyn(one) || is_variable(one) {
        return true;
    }
    if is_dyn(other) || is_variable(other) {
        return false;
    }
    match (one, other) {
        (Type::List(one), Type::List(other)) | (Type::Optional(one), Type::Optional(other)) => {
            is_as_general(one, other)
        }
        (Type::Map(one_key, one_value), Type::Map(key, value)) => {
            is_as_general(one_key, key) && is_as_general(one_value, value)
        }
        (Type::Type(_), Type::Type(_)) => true,
        _ => same(one, other),
    }
}
