//! What a call costs: one variant per rule, shared by the static estimate and the meter.
//!
//! n is a size: characters of a string, bytes, elements; 1 of anything else. c(n) is n × 0.1,
//! rounded up. Costs come on top of those of the arguments. Where a rule names a list, the meter
//! and the estimate may differ; upstream has two functions there, and so have we.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CostClass {
    /// 1, whatever the arguments: all overloads that no other rule names.
    One,

    // The language.
    /// `&&` and `||`: nothing of their own; the second operand may not be evaluated.
    Logical,
    /// `?:`: nothing of its own, one of the branches.
    Conditional,
    /// `list[i]`: 1; what is known of elements holds for the result.
    IndexList,
    /// `map[k]`: 1; what is known of values holds for the result.
    IndexMap,
    /// `x in list`: the list's size.
    InList,
    /// `==`: as [`Self::Compare`], but 1 for Kubernetes' own types.
    Equal,
    /// `!=`, and `<` and its like on strings and bytes: c of the smaller operand.
    Compare,
    /// `+` of strings or bytes: c of the result.
    AddText,
    /// `+` of lists: 1.
    AddList,
    /// `contains`: c(target) × c(argument).
    Contains,
    /// The member `matches`: c(target + 1) × 0.25 of the pattern.
    Matches,
    /// `startsWith`, `endsWith`: c of the argument (estimate), c of the target (meter).
    Affix,
    /// `string(bytes)`: c.
    BytesToString,
    /// `bytes(string)`: c.
    StringToBytes,
    /// `strings.quote`: c.
    Quote,
    /// `format` of strings: c of the target.
    Format,

    // Strings, of the extension library.
    /// `lowerAscii`, `upperAscii`, `substring`, `trim`: c(target), the size of the result.
    TransformText,
    /// `replace`: c at twice the factor.
    Replace,
    /// `split`: c at twice the factor.
    Split,
    /// `join`: c of list × element + separators (estimate), c of the result at twice the factor.
    Join,

    // Lists.
    /// `isSorted`, `sum`, `max`, `min`, `indexOf`, `lastIndexOf`, of lists and of strings: one
    /// traversal.
    Traverse,
    /// `slice`: 11 + size of the result.
    Slice,
    /// `lists.range`: 11 + size of the result.
    Range,
    /// `reverse` of lists: 11 + size.
    Reverse,
    /// `flatten`: 11 + depth × size.
    Flatten,
    /// `distinct`: 11 + 2 n².
    Distinct,
    /// `sort`: 11 + 2 n².
    Sort,
    /// `sort` of strings or bytes: 11 + 2.1 n².
    SortText,
    /// `@sortByAssociatedKeys`: 11 + 2 n² of the keys.
    SortBy,
    /// The same by strings or bytes: 11 + 2.1 n².
    SortByText,
    /// `sets.contains`, `sets.intersects`: 1 + m × n.
    Sets,
    /// `sets.equivalent`: 1 + 2 × m × n.
    SetsEquivalent,

    // Kubernetes' libraries.
    /// `check` of the authorizer: 350,000.
    AuthorizerCheck,
    /// `fieldSelector`, `labelSelector`: 10 + c(argument) + what parsing it allocates.
    Selector,
    /// `url`, `jsonpatch.escapeKey`: c(argument), the size of the result.
    ParseSized,
    /// `cidr`, `ip` of a string, `quantity`, `semver`, and their `is…`: c(argument).
    Parse,
    /// `ip.isCanonical`: c at twice the factor.
    Canonical,
    /// `find`, `findAll`: c(target + 1) × 0.25 of the pattern.
    Find,
    /// `containsIP` of an address.
    ContainsIp,
    /// `containsIP` of a string, which is parsed first.
    ContainsIpText,
    /// `containsCIDR` of a network.
    ContainsCidr,
    /// `containsCIDR` of a string.
    ContainsCidrText,
    /// `validate` of a named format.
    Validate,
}

impl CostClass {
    /// Whether the rule is one of the function, not of the overload: it holds too where the overload
    /// is known only at run time.
    #[must_use]
    pub fn is_of_function(self) -> bool {
        matches!(
            self,
            Self::TransformText
                | Self::Replace
                | Self::Split
                | Self::Join
                | Self::Traverse
                | Self::AuthorizerCheck
                | Self::Selector
                | Self::ParseSized
                | Self::Parse
                | Self::Canonical
                | Self::Find
                | Self::ContainsIp
                | Self::ContainsCidr
                | Self::Validate
        )
    }
}
