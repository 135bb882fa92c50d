//! Expressions that mostly compile, from the real declarations: of a wanted type, by every overload
//! that returns it, every macro, literals, variables and operators.

use std::sync::LazyLock;

use coracle_cel::declare::{Function, Library, Overload, Sig};
use coracle_cel::library::LIBRARIES;
use fastrand::Rng;

use crate::leaves::leaves;
use crate::question::Question;
use crate::values::quote;

/// The variables of every generated question: name, type, value.
pub(crate) const VARIABLES: &[(&str, &str, &str)] = &[
    ("b", "bool", "true"),
    ("i", "int", "3"),
    ("u", "uint", "7u"),
    ("d", "double", "2.5"),
    ("s", "string", "'hello world'"),
    ("e", "string", "''"),
    ("by", "bytes", "b'abc\\xff'"),
    ("t", "timestamp", "timestamp('2023-05-06T07:08:09.123Z')"),
    ("du", "duration", "duration('1h30m')"),
    ("li", "list(int)", "[3, 1, 2, 3]"),
    ("ls", "list(string)", "['b', 'a', 'ccc']"),
    ("ld", "list(dyn)", "[dyn(1), dyn('x'), dyn(2.0), dyn(null)]"),
    ("ll", "list(list(int))", "[[1, 2], [], [3]]"),
    ("m", "map(string, int)", "{'a': 1}"),
    ("ms", "map(string, string)", "{'k': 'v'}"),
    ("mi", "map(int, string)", "{1: 'one'}"),
    ("dy", "dyn", "{'a': dyn([1, 2]), 'b': dyn({'c': 'x'})}"),
    ("dn", "dyn", "5"),
    ("o", "optional_type(int)", "optional.of(1)"),
    ("q", "kubernetes.Quantity", "quantity('1500m')"),
    ("ip4", "net.IP", "ip('10.1.2.3')"),
    ("net4", "net.CIDR", "cidr('10.0.0.0/8')"),
    (
        "ur",
        "kubernetes.URL",
        "url('https://example.com:80/p?k=v')",
    ),
    ("sv", "kubernetes.Semver", "semver('1.2.3')"),
    ("un", "int", ""),
];

pub(crate) fn question(expr: String) -> Question {
    VARIABLES
        .iter()
        .fold(Question::of(expr), |mut question, (name, of, value)| {
            question.vars.insert((*name).into(), (*of).into());
            if !value.is_empty() {
                question.lets.insert((*name).into(), (*value).into());
            }
            question
        })
}

/// A wanted type. Parameters of signatures are chosen when they are met.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Want {
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Null,
    Timestamp,
    Duration,
    Dyn,
    List(Box<Want>),
    Map(Box<Want>, Box<Want>),
    Optional(Box<Want>),
    Named(&'static str),
    Any,
}

struct Choice {
    function: &'static Function,
    overload: &'static Overload,
}

static CHOICES: LazyLock<Vec<Choice>> = LazyLock::new(|| {
    LIBRARIES
        .iter()
        .flat_map(|library: &'static Library| library.functions)
        .flat_map(|function| {
            function
                .overloads
                .iter()
                .map(move |overload| Choice { function, overload })
        })
        .filter(|choice| !choice.function.name.starts_with('@'))
        .filter(|choice| !choice.function.name.starts_with("cel.@"))
        .collect()
});

pub(crate) struct Generator<'a> {
    pub(crate) rng: &'a mut Rng,
    scope: Vec<(String, Want)>,
    fresh: usize,
}

impl<'a> Generator<'a> {
    pub(crate) fn new(rng: &'a mut Rng) -> Self {
        Self {
            rng,
            scope: Vec::new(),
            fresh: 0,
        }
    }

    pub(crate) fn expression(&mut self) -> String {
        let depth = self.rng.usize(1..6);
        let want = match self.rng.u8(0..4) {
            0 => Want::Bool,
            _ => self.some_type(2),
        };
        self.of(&want, depth)
    }

    fn one<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.rng.usize(0..of.len())].clone()
    }

    fn some_type(&mut self, depth: usize) -> Want {
        let most = if depth == 0 { 10 } else { 14 };
        match self.rng.u8(0..most) {
            0 => Want::Bool,
            1 | 2 => Want::Int,
            3 => Want::Uint,
            4 => Want::Double,
            5 | 6 => Want::String,
            7 => Want::Bytes,
            8 => Want::Timestamp,
            9 => Want::Duration,
            10 => Want::List(Box::new(self.some_type(depth - 1))),
            11 => Want::Map(
                Box::new(self.key_type()),
                Box::new(self.some_type(depth - 1)),
            ),
            12 => Want::Optional(Box::new(self.some_type(depth - 1))),
            _ => Want::Named(self.one(&[
                "kubernetes.Quantity",
                "net.IP",
                "net.CIDR",
                "kubernetes.URL",
                "kubernetes.Semver",
                "kubernetes.NamedFormat",
            ])),
        }
    }

    fn key_type(&mut self) -> Want {
        self.one(&[
            Want::String,
            Want::Int,
            Want::Bool,
            Want::Uint,
            Want::String,
        ])
    }

    fn of(&mut self, want: &Want, depth: usize) -> String {
        // Now and then what does not fit.
        if self.rng.u16(0..200) == 0 {
            let other = self.some_type(1);
            return self.leaf(&other);
        }
        if depth == 0 {
            return self.leaf(want);
        }
        match self.rng.u8(0..12) {
            0 | 1 => self.leaf(want),
            2 => self.conditional(want, depth),
            3 => self.macro_call(want, depth),
            4 => self.access(want, depth),
            5 if *want == Want::Bool => self.logical(depth),
            6 => self.literal(want, depth),
            _ => self.call(want, depth),
        }
    }

    fn conditional(&mut self, want: &Want, depth: usize) -> String {
        let condition = self.of(&Want::Bool, depth - 1);
        let yes = self.of(want, depth - 1);
        let no = self.of(want, depth - 1);
        format!("({condition} ? {yes} : {no})")
    }

    fn logical(&mut self, depth: usize) -> String {
        let operator = self.one(&["&&", "||"]);
        let terms: Vec<_> = (0..self.rng.usize(2..5))
            .map(|_| self.of(&Want::Bool, depth - 1))
            .collect();
        format!("({})", terms.join(&format!(" {operator} ")))
    }

    /// Of a list, a map, an optional or a dynamic value.
    fn access(&mut self, want: &Want, depth: usize) -> String {
        let boxed = Box::new(want.clone());
        match self.rng.u8(0..7) {
            0 => {
                let list = self.of(&Want::List(boxed), depth - 1);
                format!("{list}[{}]", self.rng.usize(0..3))
            }
            1 => {
                let map = self.of(&Want::Map(Box::new(Want::String), boxed), depth - 1);
                format!("{map}.{}", self.one(&["a", "k", "b", "missing"]))
            }
            2 => {
                let key = self.key_type();
                let map = self.of(&Want::Map(Box::new(key.clone()), boxed), depth - 1);
                let key = self.leaf(&key);
                format!("{map}[{key}]")
            }
            3 => {
                let optional = self.of(&Want::Optional(boxed), depth - 1);
                let default = self.of(want, depth - 1);
                format!("{optional}.orValue({default})")
            }
            4 => {
                let optional = self.of(&Want::Optional(boxed), depth - 1);
                format!("{optional}.value()")
            }
            5 => {
                let list = self.of(&Want::List(boxed), depth - 1);
                let default = self.leaf(want);
                format!("{list}[?{}].orValue({default})", self.rng.usize(0..3))
            }
            _ => self
                .one(&[
                    "dy.a[0]",
                    "dy.b.c",
                    "dy.missing",
                    "dyn(dy)['a'][1]",
                    "ld[0]",
                    "dn",
                ])
                .into(),
        }
    }

    fn macro_call(&mut self, want: &Want, depth: usize) -> String {
        self.fresh += 1;
        let name = if self.rng.u8(0..8) == 0 {
            "i".to_owned()
        } else {
            format!("x{}", self.fresh)
        };
        let element = self.some_type(1);
        let over_map = self.rng.u8(0..5) == 0;
        let (range, bound) = if over_map {
            let range = Want::Map(Box::new(Want::String), Box::new(element.clone()));
            (self.of(&range, depth - 1), Want::String)
        } else {
            let range = Want::List(Box::new(element.clone()));
            (self.of(&range, depth - 1), element)
        };

        self.scope.push((name.clone(), bound.clone()));
        let inner = depth - 1;
        let text = match want {
            Want::Bool => match self.rng.u8(0..6) {
                0 => format!("{range}.all({name}, {})", self.of(&Want::Bool, inner)),
                1 => format!("{range}.exists({name}, {})", self.of(&Want::Bool, inner)),
                2 => format!(
                    "{range}.exists_one({name}, {})",
                    self.of(&Want::Bool, inner)
                ),
                3 => {
                    let second = format!("{name}v");
                    let which = self.one(&["all", "exists", "existsOne", "exists_one"]);
                    format!(
                        "{range}.{which}({name}, {second}, {})",
                        self.of(&Want::Bool, inner)
                    )
                }
                _ => format!(
                    "has({})",
                    self.one(&["dy.a", "dy.zz", "m.a", "m.zz", "dy.b.c", "ms.k", "dy.b.c.d"])
                ),
            },
            Want::List(of) => match self.rng.u8(0..6) {
                0 => format!("{range}.map({name}, {})", self.of(of, inner)),
                1 => {
                    let filter = self.of(&Want::Bool, inner);
                    format!("{range}.map({name}, {filter}, {})", self.of(of, inner))
                }
                2 if **of == bound => {
                    format!("{range}.filter({name}, {})", self.of(&Want::Bool, inner))
                }
                3 => format!(
                    "{range}.transformList({name}, {name}v, {})",
                    self.of(of, inner)
                ),
                4 if **of == bound => {
                    let key = self.one(&[Want::Int, Want::String, Want::Double]);
                    format!("{range}.sortBy({name}, {})", self.of(&key, inner))
                }
                _ => {
                    let filter = self.of(&Want::Bool, inner);
                    format!(
                        "{range}.transformList({name}, {name}v, {filter}, {})",
                        self.of(of, inner)
                    )
                }
            },
            Want::Map(_, of) => match self.rng.u8(0..2) {
                0 => format!(
                    "{range}.transformMap({name}, {name}v, {})",
                    self.of(of, inner)
                ),
                _ => {
                    let key = self.leaf(&Want::String);
                    let value = self.of(of, inner);
                    format!("{range}.transformMapEntry({name}, {name}v, {{{key}: {value}}})")
                }
            },
            Want::Optional(of) => {
                let from = self.some_type(1);
                self.scope.pop();
                let target = self.of(&Want::Optional(Box::new(from.clone())), inner);
                self.scope.push((name.clone(), from));
                if self.rng.bool() {
                    format!("{target}.optMap({name}, {})", self.of(of, inner))
                } else {
                    format!("{target}.optFlatMap({name}, {})", self.of(want, inner))
                }
            }
            _ => self.call(want, depth),
        };
        self.scope.pop();
        text
    }

    /// By an overload that returns the type.
    fn call(&mut self, want: &Want, depth: usize) -> String {
        let start = self.rng.usize(0..CHOICES.len());
        for offset in 0..CHOICES.len() {
            let choice = &CHOICES[(start + offset) % CHOICES.len()];
            let mut parameters = Vec::new();
            if fits(&choice.overload.result, want, &mut parameters) {
                return self.apply(choice, &mut parameters, depth);
            }
        }
        self.leaf(want)
    }

    fn apply(
        &mut self,
        choice: &Choice,
        parameters: &mut Vec<(&'static str, Want)>,
        depth: usize,
    ) -> String {
        let args: Vec<String> = choice
            .overload
            .args
            .iter()
            .map(|sig| {
                let want = self.want_of(sig, parameters);
                // Sometimes dynamic, so that overloads are found at run time.
                let text = self.argument(choice.function.name, &want, depth - 1);
                if self.rng.u8(0..16) == 0 {
                    format!("dyn({text})")
                } else {
                    text
                }
            })
            .collect();
        write_call(choice.function.name, choice.overload.receiver, &args)
    }

    /// An operand, sometimes one that the function can use.
    fn argument(&mut self, function: &str, want: &Want, depth: usize) -> String {
        // Upstream makes the list before it counts its cost.
        if function == "lists.range" {
            return self.one(&["0", "3", "10", "-1", "i"]).into();
        }
        if *want == Want::String && self.rng.u8(0..3) > 0 {
            let texts: &[&str] = match function {
                "ip" | "isIP" | "ip.isCanonical" | "containsIP" => &[
                    "'10.0.0.1'",
                    "'::1'",
                    "'fe80::1%eth0'",
                    "'1.2.3'",
                    "'::ffff:1.2.3.4'",
                ],
                "cidr" | "isCIDR" | "containsCIDR" => &[
                    "'10.0.0.0/8'",
                    "'10.1.2.3/16'",
                    "'::/0'",
                    "'10.0.0.0/33'",
                    "'x'",
                ],
                "quantity" | "isQuantity" => &[
                    "'1'",
                    "'1.5Gi'",
                    "'-3m'",
                    "'1e3'",
                    "'x'",
                    "'100000000000000000000'",
                    "'1Ki'",
                ],
                "semver" | "isSemver" => &[
                    "'1.2.3'",
                    "'v1.2.3'",
                    "'1.2'",
                    "'1.2.3-rc.1+b'",
                    "'01.2.3'",
                    "'x'",
                ],
                "url" | "isURL" => &[
                    "'https://a.b:80/c?d=e'",
                    "'/p'",
                    "'x'",
                    "'http://[::1]/'",
                    "'https://u@h/%41'",
                ],
                "matches" | "find" | "findAll" => {
                    &["'a+'", "'[a-z]+'", "'(x'", "'^h.*d$'", "''", "'o'"]
                }
                "timestamp" => &[
                    "'2020-01-02T03:04:05Z'",
                    "'2020-01-02T03:04:05.678+01:00'",
                    "'x'",
                    "'9999-12-31T23:59:59Z'",
                ],
                "duration" => &["'1s'", "'1h2m3.5s'", "'-1ms'", "'x'", "'1d'"],
                "int" | "uint" | "double" | "bool" => &[
                    "'1'",
                    "'-5'",
                    "'1.5'",
                    "'true'",
                    "'x'",
                    "'9223372036854775808'",
                ],
                "format" => &[
                    "'%s %d'", "'%s'", "'%f'", "'%.2e'", "'%x'", "'%b'", "'%%'", "'%q'",
                ],
                name if name.starts_with("get") => {
                    &["'America/New_York'", "'+01:30'", "'UTC'", "'Mars'"]
                }
                _ => &[],
            };
            if !texts.is_empty() {
                return self.one(texts).into();
            }
        }
        self.of(want, depth)
    }

    fn want_of(&mut self, sig: &Sig, parameters: &mut Vec<(&'static str, Want)>) -> Want {
        match sig {
            Sig::Bool => Want::Bool,
            Sig::Int => Want::Int,
            Sig::Uint => Want::Uint,
            Sig::Double => Want::Double,
            Sig::String => Want::String,
            Sig::Bytes => Want::Bytes,
            Sig::Null => Want::Null,
            Sig::Timestamp => Want::Timestamp,
            Sig::Duration => Want::Duration,
            Sig::Dyn => Want::Dyn,
            Sig::List(of) => Want::List(Box::new(self.want_of(of, parameters))),
            Sig::Map(key, value) => {
                let key = match key {
                    Sig::Param(name) if !parameters.iter().any(|(known, _)| known == name) => {
                        let key = self.key_type();
                        parameters.push((name, key.clone()));
                        key
                    }
                    key => self.want_of(key, parameters),
                };
                Want::Map(Box::new(key), Box::new(self.want_of(value, parameters)))
            }
            Sig::Optional(of) => Want::Optional(Box::new(self.want_of(of, parameters))),
            Sig::Type(_) => Want::Any,
            Sig::Opaque(name) | Sig::Object(name) => Want::Named(name),
            Sig::Param(name) => {
                if let Some((_, known)) = parameters.iter().find(|(known, _)| known == name) {
                    return known.clone();
                }
                let chosen = self.some_type(1);
                parameters.push((name, chosen.clone()));
                chosen
            }
        }
    }

    /// A literal list, map or struct with operands.
    fn literal(&mut self, want: &Want, depth: usize) -> String {
        let inner = depth - 1;
        match want {
            Want::List(of) => {
                let items: Vec<_> = (0..self.rng.usize(0..4))
                    .map(|_| {
                        if self.rng.u8(0..8) == 0 {
                            format!("?{}", self.of(&Want::Optional(of.clone()), inner))
                        } else {
                            self.of(of, inner)
                        }
                    })
                    .collect();
                format!("[{}]", items.join(", "))
            }
            Want::Map(key, value) => {
                if self.rng.u8(0..5) == 0 {
                    return "{}".into();
                }
                // Of one entry: the order of several is random upstream.
                let key = self.of(key, inner);
                if self.rng.u8(0..8) == 0 {
                    return format!(
                        "{{?{key}: {}}}",
                        self.of(&Want::Optional(value.clone()), inner)
                    );
                }
                format!("{{{key}: {}}}", self.of(value, inner))
            }
            Want::Optional(of) => match self.rng.u8(0..4) {
                0 => format!("optional.ofNonZeroValue({})", self.of(of, inner)),
                1 => format!("[{}][?{}]", self.of(of, inner), self.rng.u8(0..2)),
                2 => format!("{{'a': {}}}.?{}", self.of(of, inner), self.one(&["a", "b"])),
                _ => format!("optional.of({})", self.of(of, inner)),
            },
            _ => self.leaf(want),
        }
    }

    fn leaf(&mut self, want: &Want) -> String {
        let in_scope: Vec<String> = self
            .scope
            .iter()
            .filter(|(_, of)| of == want)
            .map(|(name, _)| name.clone())
            .collect();
        if !in_scope.is_empty() && self.rng.u8(0..3) > 0 {
            return self.one(&in_scope);
        }
        match want {
            Want::String => self.string(),
            _ => self.one(leaves(want)).into(),
        }
    }

    fn string(&mut self) -> String {
        match self.rng.u8(0..6) {
            0 => "s".into(),
            1 => "e".into(),
            2 => {
                let length = self.rng.usize(0..12);
                let text: String = (0..length)
                    .map(|_| {
                        self.one(&[
                            'a',
                            'b',
                            'é',
                            '日',
                            ' ',
                            '-',
                            '.',
                            '/',
                            'Z',
                            '0',
                            '%',
                            's',
                            '\u{1F600}',
                            '\n',
                        ])
                    })
                    .collect();
                quote(&text)
            }
            _ => self
                .one(&[
                    "'a'",
                    "'b,c'",
                    "'hello'",
                    "'x.y-z'",
                    "'%s'",
                    "'日本'",
                    "\"q\"",
                    "r'\\d'",
                    "'\\u00e9'",
                    "'''t'''",
                    "'abc.def'",
                    "'1.5'",
                ])
                .into(),
        }
    }
}

fn fits(sig: &Sig, want: &Want, parameters: &mut Vec<(&'static str, Want)>) -> bool {
    match (sig, want) {
        (Sig::Param(name), _) => match parameters.iter().find(|(known, _)| known == name) {
            Some((_, known)) => known == want,
            None => {
                parameters.push((name, want.clone()));
                true
            }
        },
        (Sig::List(of), Want::List(want)) | (Sig::Optional(of), Want::Optional(want)) => {
            fits(of, want, parameters)
        }
        (Sig::Map(key, value), Want::Map(want_key, want_value)) => {
            fits(key, want_key, parameters) && fits(value, want_value, parameters)
        }
        (Sig::Opaque(name) | Sig::Object(name), Want::Named(want)) => name == want,
        (Sig::Bool, Want::Bool)
        | (Sig::Int, Want::Int)
        | (Sig::Uint, Want::Uint)
        | (Sig::Double, Want::Double)
        | (Sig::String, Want::String)
        | (Sig::Bytes, Want::Bytes)
        | (Sig::Timestamp, Want::Timestamp)
        | (Sig::Duration, Want::Duration)
        | (Sig::Dyn | Sig::Type(_), Want::Dyn | Want::Any) => true,
        _ => false,
    }
}

/// Operators are written as such.
fn write_call(function: &str, receiver: bool, args: &[String]) -> String {
    match (function, args) {
        ("_?_:_", [a, b, c]) => format!("({a} ? {b} : {c})"),
        ("_[_]", [a, b]) => format!("{a}[{b}]"),
        ("_[?_]", [a, b]) => format!("{a}[?{b}]"),
        ("_?._", [a, b]) => format!("{a}.?{}", b.trim_matches(['\'', '"'])),
        ("!_", [a]) => format!("!{a}"),
        ("-_", [a]) => format!("-{a}"),
        ("@in", [a, b]) => format!("({a} in {b})"),
        (name, [a, b]) if name.starts_with('_') && name.ends_with('_') => {
            format!("({a} {} {b})", name.trim_matches('_'))
        }
        _ if receiver => format!("{}.{function}({})", args[0], args[1..].join(", ")),
        _ => format!("{function}({})", args.join(", ")),
    }
}
