//! A type-erased strategy, as the registry uses it.

use coracle_api::{Value, typed};
use futures_util::future::BoxFuture;

use super::{Context, Errors, Grace, Settle, Strategy, View};
use crate::{ApiError, Part};

/// [`Strategy`] over trees: it decodes the typed views.
pub trait AnyStrategy: Send + Sync {
    fn generate_name(&self, base: &str, random: u64) -> String;

    fn begin<'n, 'a: 'n>(
        &'a self,
        new: &'n mut Value,
        old: Option<&'n Value>,
        cx: &'a Context<'a>,
    ) -> Option<BoxFuture<'n, Result<Option<Settle<'a>>, ApiError>>>;

    fn keeps_status(&self) -> bool;

    fn takes_long(&self) -> bool;

    fn notices(&self, sent: &Value, cx: &Context<'_>) -> Vec<String>;

    fn prepare_create(&self, new: &mut Value, cx: &Context<'_>);

    fn prepare_update(&self, new: &mut Value, old: &Value, cx: &Context<'_>);

    /// Validates an object, which is new if there is no old one. Returns the warnings; where there
    /// are errors, only those of rules.
    fn validate_tree(
        &self,
        new: &Value,
        old: Option<&Value>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) -> Result<Vec<String>, ApiError>;

    fn canonicalize(&self, new: &mut Value);

    fn counts_generation(&self, new: &Value, old: &Value, part: Part) -> bool;

    fn orphans_by_default(&self) -> bool;

    fn never_deleted(&self, name: &str) -> Option<&'static str>;

    fn grace(&self, object: &Value, asked: Option<i64>) -> Grace;

    fn holds(&self, object: &Value) -> bool;

    fn mark_deleted(&self, object: &mut Value);

    fn delete_notice(&self) -> Option<&'static str>;

    fn after_delete<'a>(
        &'a self,
        object: &'a Value,
        cx: &'a Context<'a>,
    ) -> Option<BoxFuture<'a, ()>>;
}

impl<S: Strategy> AnyStrategy for S {
    fn generate_name(&self, base: &str, random: u64) -> String {
        Strategy::generate_name(self, base, random)
    }

    fn begin<'n, 'a: 'n>(
        &'a self,
        new: &'n mut Value,
        old: Option<&'n Value>,
        cx: &'a Context<'a>,
    ) -> Option<BoxFuture<'n, Result<Option<Settle<'a>>, ApiError>>> {
        Strategy::begin(self, new, old, cx)
    }

    fn keeps_status(&self) -> bool {
        Strategy::keeps_status(self)
    }

    fn takes_long(&self) -> bool {
        Strategy::takes_long(self)
    }

    fn notices(&self, sent: &Value, cx: &Context<'_>) -> Vec<String> {
        Strategy::notices(self, sent, cx)
    }

    fn prepare_create(&self, new: &mut Value, cx: &Context<'_>) {
        Strategy::prepare_create(self, new, cx);
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, cx: &Context<'_>) {
        Strategy::prepare_update(self, new, old, cx);
    }

    fn validate_tree(
        &self,
        new: &Value,
        old: Option<&Value>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) -> Result<Vec<String>, ApiError> {
        let new = view::<S>(new)?;
        let old = old.map(view::<S>).transpose()?;

        let own = self.own_metadata(cx.part);
        match &old {
            None => {
                if own.on_create {
                    own.validate(new.tree, cx, errors);
                }
                self.validate(&new, cx, errors);
            }
            Some(old) => {
                if own.on_update {
                    own.validate_change(new.tree, old.tree, errors);
                }
                self.validate_update(&new, old, cx, errors);
            }
        }

        let mut warnings = Vec::new();
        self.validate_rules(&new, old.as_ref(), cx, errors, &mut warnings);

        if errors.is_empty() {
            warnings.extend(self.warnings(&new, old.as_ref(), cx));
        }
        Ok(warnings)
    }

    fn canonicalize(&self, new: &mut Value) {
        Strategy::canonicalize(self, new);
    }

    fn counts_generation(&self, new: &Value, old: &Value, part: Part) -> bool {
        Strategy::counts_generation(self, new, old, part)
    }

    fn orphans_by_default(&self) -> bool {
        Strategy::orphans_by_default(self)
    }

    fn grace(&self, object: &Value, asked: Option<i64>) -> Grace {
        Strategy::grace(self, object, asked)
    }

    fn never_deleted(&self, name: &str) -> Option<&'static str> {
        Strategy::never_deleted(self, name)
    }

    fn holds(&self, object: &Value) -> bool {
        Strategy::holds(self, object)
    }

    fn mark_deleted(&self, object: &mut Value) {
        Strategy::mark_deleted(self, object);
    }

    fn delete_notice(&self) -> Option<&'static str> {
        Strategy::delete_notice(self)
    }

    fn after_delete<'a>(
        &'a self,
        object: &'a Value,
        cx: &'a Context<'a>,
    ) -> Option<BoxFuture<'a, ()>> {
        Strategy::after_delete(self, object, cx)
    }
}

fn view<S: Strategy>(tree: &Value) -> Result<View<'_, S::Object>, ApiError> {
    let view = typed::view(tree).map_err(|error| ApiError::internal(error.to_string()))?;
    Ok(View { view, tree })
}
