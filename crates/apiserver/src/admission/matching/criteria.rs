//! What a policy, a binding or a webhook is configured to see.

use coracle_api::selector::LabelSelector;
use coracle_api::{Map, Value};
use coracle_kinds::ApiError;

use super::{Match, Question, Rule};

/// Rules and selectors, read from the configuration.
#[derive(Clone, Debug)]
pub struct Criteria {
    namespaces: Selector,
    objects: Selector,
    excluded: Vec<Rule>,
    /// `None`: everything.
    rules: Option<Vec<Rule>>,
    /// Whether equivalent resources match too.
    equivalent: bool,
}

/// A selector, or what is wrong with it: that is told to requests that it would concern.
type Selector = Result<LabelSelector, String>;

impl Criteria {
    /// The `matchConstraints` of a policy, or the `matchResources` of a binding. Without rules they
    /// match everything.
    pub fn of_match_resources(resources: &Map) -> Criteria {
        let rules = Rule::read_all(resources.get("resourceRules"));
        Criteria {
            rules: (!rules.is_empty()).then_some(rules),
            excluded: Rule::read_all(resources.get("excludeResourceRules")),
            ..Criteria::selecting(resources)
        }
    }

    /// Of a webhook. Without rules it matches nothing.
    pub fn of_webhook(webhook: &Map) -> Criteria {
        Criteria {
            rules: Some(Rule::read_all(webhook.get("rules"))),
            ..Criteria::selecting(webhook)
        }
    }

    fn selecting(of: &Map) -> Criteria {
        Criteria {
            namespaces: selector(of.get("namespaceSelector")),
            objects: selector(of.get("objectSelector")),
            excluded: Vec::new(),
            rules: None,
            equivalent: of.str("matchPolicy").unwrap_or("Equivalent") == "Equivalent",
        }
    }

    /// Whether a rule includes the request. Most requests concern few policies: those of the others
    /// end here, before anything is looked up.
    pub fn has_rule_for(&self, question: &Question<'_>) -> bool {
        match &self.rules {
            None => true,
            Some(rules) => self.find(rules, question).is_some(),
        }
    }

    /// Whether a request matches, and as what.
    ///
    /// # Errors
    /// The namespace of the request does not exist, or a selector is invalid. Only requests that
    /// match otherwise are refused for that.
    pub fn matches<'a>(&self, question: &Question<'a>) -> Result<Option<Match<'a>>, ApiError> {
        let selected = match &self.namespaces {
            Ok(selector) => question.is_in(selector),
            Err(_) if !question.has_namespace() => Ok(true),
            Err(error) => Err(ApiError::internal(error)),
        };
        if let Ok(false) = selected {
            return Ok(None);
        }

        let objects = match &self.objects {
            Ok(selector) => Ok(question.is_selected_by(selector)),
            Err(error) => Err(ApiError::internal(error)),
        };
        if let Ok(false) = objects {
            return Ok(None);
        }

        if self.find(&self.excluded, question).is_some() {
            return Ok(None);
        }

        let found = match &self.rules {
            None => Some(question.own()),
            Some(rules) => self.find(rules, question),
        };
        if found.is_some() {
            selected?;
            objects?;
        }
        Ok(found)
    }

    /// What the first rule that includes the request includes it as. Rules for the resource of the
    /// request come before those for an equivalent one.
    fn find<'a>(&self, rules: &[Rule], question: &Question<'a>) -> Option<Match<'a>> {
        let attributes = question.attributes;
        let includes = |rule: &Rule, wanted: &Match<'_>| {
            rule.includes(
                wanted.resource,
                attributes.subresource,
                attributes.operation,
                attributes.namespace(),
            ) && rule.includes_name(attributes.name)
        };

        let own = question.own();
        if rules.iter().any(|rule| includes(rule, &own)) {
            return Some(own);
        }
        if !self.equivalent || rules.is_empty() {
            return None;
        }

        let others = question.equivalents();
        rules.iter().find_map(|rule| {
            let mut others = others
                .iter()
                .filter(|other| !other.is_same_resource(own.resource));
            others.find(|other| includes(rule, other)).copied()
        })
    }
}

fn selector(given: Option<&Value>) -> Selector {
    match given {
        None | Some(Value::Null) => Ok(LabelSelector::new(Vec::new())),
        given => LabelSelector::from_value(given).map_err(|error| error.to_string()),
    }
}
