//! Questions to the authorizer.

mod check;
mod table;

pub use check::{Authorizer, Check, Request, Verdict};
pub(super) use table::FUNCTIONS;

mod run {
    use std::sync::Arc;

    use coracle_api::names;

    use super::check::{Authorizer, Check, Request, Verdict};
    use crate::declare::NativeResult;
    use crate::eval::{Answer, Context, EvalError};
    use crate::library::args::{extra, made, text};
    use crate::value::{Extra, Value};

    fn authorizer<'v>(args: &'v [Value<'_>]) -> Result<&'v Authorizer, EvalError> {
        match extra(args, 0)? {
            Extra::Authorizer(authorizer) => Ok(authorizer),
            _ => Err(EvalError::NoSuchOverload),
        }
    }

    fn check_of(user: &Authorizer, request: Request) -> Arc<Check> {
        Arc::new(Check {
            user: user.clone(),
            verb: String::new(),
            request,
        })
    }

    pub(super) fn path<'a>(_: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
        let (user, path) = (authorizer(args)?, text(args, 1)?);
        if path.trim().is_empty() {
            return Err(EvalError::failed("path must not be empty"));
        }
        let request = Request::Path(path.to_owned());
        Ok(made(Extra::PathCheck(check_of(user, request))))
    }

    pub(super) fn group<'a>(_: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
        let request = Request::Resource {
            group: text(args, 1)?.to_owned(),
            resource: String::new(),
            subresource: String::new(),
            namespace: String::new(),
            name: String::new(),
            field_selector: String::new(),
            label_selector: String::new(),
        };
        let check = check_of(authorizer(args)?, request);
        Ok(made(Extra::GroupCheck(check)))
    }

    pub(super) fn service_account<'a>(_: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
        authorizer(args)?;
        let (namespace, name) = (text(args, 1)?, text(args, 2)?);
        if !names::dns1123_subdomain(name).is_empty() {
            return Err(EvalError::failed("Invalid service account name"));
        }
        if !names::dns1123_label(namespace).is_empty() {
            return Err(EvalError::failed("Invalid service account namespace"));
        }
        Ok(made(Extra::Authorizer(Authorizer::ServiceAccount {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        })))
    }

    pub(super) fn resource<'a>(_: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
        let Extra::GroupCheck(check) = extra(args, 0)? else {
            return Err(EvalError::NoSuchOverload);
        };
        let wanted = text(args, 1)?;
        if wanted.trim().is_empty() {
            return Err(EvalError::failed("resource must not be empty"));
        }
        let mut check = Check::clone(check);
        if let Request::Resource { resource, .. } = &mut check.request {
            wanted.clone_into(resource);
        }
        Ok(made(Extra::ResourceCheck(Arc::new(check))))
    }

    macro_rules! setters {
        ($($function:ident sets $field:ident;)*) => {$(
            pub(in crate::library) fn $function<'a>(_: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
                let Extra::ResourceCheck(check) = extra(args, 0)? else {
                    return Err(EvalError::NoSuchOverload);
                };
                let value = text(args, 1)?;
                let mut check = Check::clone(check);
                if let Request::Resource { $field, .. } = &mut check.request {
                    value.clone_into($field);
                }
                Ok(made(Extra::ResourceCheck(Arc::new(check))))
            }
        )*};
    }

    setters! {
        subresource sets subresource;
        namespace sets namespace;
        name sets name;
        field_selector sets field_selector;
        label_selector sets label_selector;
    }

    pub(super) fn check<'a>(context: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
        let (Extra::PathCheck(check) | Extra::ResourceCheck(check)) = extra(args, 0)? else {
            return Err(EvalError::NoSuchOverload);
        };
        let mut check = Check::clone(check);
        text(args, 1)?.clone_into(&mut check.verb);
        let Some(authorize) = context.authorize else {
            return Err(EvalError::Internal("there is no authorizer".into()));
        };
        match authorize(&check) {
            Answer::Decided(verdict) => Ok(made(Extra::Decision(verdict))),
            Answer::Later => Err(EvalError::Pending(Arc::new(check))),
        }
    }

    fn verdict<'v>(args: &'v [Value<'_>]) -> Result<&'v Verdict, EvalError> {
        match extra(args, 0)? {
            Extra::Decision(verdict) => Ok(verdict),
            _ => Err(EvalError::NoSuchOverload),
        }
    }

    pub(super) fn allowed<'a>(_: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
        Ok(Value::Bool(verdict(args)?.allowed))
    }

    pub(super) fn reason<'a>(_: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
        Ok(Value::string(&verdict(args)?.reason))
    }

    pub(super) fn errored<'a>(_: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
        Ok(Value::Bool(verdict(args)?.error.is_some()))
    }

    pub(super) fn error<'a>(_: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
        Ok(Value::string(verdict(args)?.error.as_deref().unwrap_or("")))
    }
}

pub(super) use run::{field_selector, label_selector};
