//! Operands without operands: literals and variables of a type.

use crate::generate::Want;

pub(crate) fn leaves(want: &Want) -> &'static [&'static str] {
    match want {
        Want::Bool => &["true", "false", "b", "b", "dyn(true)"],
        Want::Int => &[
            "0",
            "1",
            "-1",
            "i",
            "i",
            "2",
            "10",
            "9223372036854775807",
            "-9223372036854775808",
            "0x1F",
            "un",
            "dn",
            "4",
        ],
        Want::Uint => &["0u", "1u", "u", "18446744073709551615u", "0x10u"],
        Want::Double => &[
            "0.0",
            "1.5",
            "-2.25",
            "d",
            "1e300",
            "-0.0",
            "3.0",
            "1e-7",
            "123456789.125",
            "double('NaN')",
            "double('-Infinity')",
        ],
        Want::Bytes => &["b''", "b'abc'", "by", "b'\\xff\\x00'", "b'ÿ'"],
        Want::Null => &["null"],
        Want::Timestamp => &[
            "t",
            "timestamp('2009-02-13T23:31:30Z')",
            "timestamp(0)",
            "timestamp('0001-01-01T00:00:00Z')",
        ],
        Want::Duration => &[
            "du",
            "duration('0s')",
            "duration('-1.5s')",
            "duration('1ns')",
            "duration(60)",
        ],
        Want::Dyn | Want::Any => &[
            "dyn(1)",
            "dyn('a')",
            "dy",
            "dn",
            "dyn([1])",
            "dyn(null)",
            "dyn(1u)",
            "dyn(1.0)",
            "s",
            "i",
            "type(1)",
            "null",
        ],

        _ => of_parts(want),
    }
}

/// Of types with parameters, and of Kubernetes' own.
fn of_parts(want: &Want) -> &'static [&'static str] {
    match want {
        Want::List(of) => match **of {
            Want::Int => &["li", "[]", "[1, 2, 3]", "[5]"],
            Want::String => &["ls", "[]", "['x', 'y']", "['']"],
            Want::Dyn => &["ld", "[]", "li"],
            Want::Bool => &["[true, false]", "[]"],
            Want::Double => &["[1.5, 0.5]", "[]"],
            Want::Uint => &["[3u, 1u]"],
            Want::Timestamp => &["[t, timestamp(1)]"],
            Want::Duration => &["[du, duration('1s')]"],
            Want::Bytes => &["[by, b'']"],
            Want::List(_) => &["ll", "[[]]", "[]"],
            _ => &["[]"],
        },
        Want::Map(key, value) => match (&**key, &**value) {
            (Want::String, Want::Int) => &["m", "{}", "{'a': 2}"],
            (Want::String, Want::String) => &["ms", "{'a': 'b'}"],
            (Want::Int, Want::String) => &["mi", "{}"],
            _ => &["{}"],
        },
        Want::Optional(of) => match **of {
            Want::Int => &["o", "optional.of(2)", "optional.none()"],
            _ => &["optional.none()"],
        },
        Want::Named(name) => match *name {
            "kubernetes.Quantity" => &["q", "quantity('2Gi')", "quantity('-1')", "quantity('0.1')"],
            "net.IP" => &[
                "ip4",
                "ip('::1')",
                "ip('127.0.0.1')",
                "ip('fe80::1')",
                "ip('224.0.0.1')",
            ],
            "net.CIDR" => &["net4", "cidr('::/64')", "cidr('192.168.1.5/24')"],
            "kubernetes.URL" => &["ur", "url('/path')", "url('http://x/?a=1&a=2')"],
            "kubernetes.Semver" => &["sv", "semver('2.0.0-rc.1')", "semver('v1', true)"],
            "kubernetes.NamedFormat" => &[
                "format.dns1123Label()",
                "format.dns1123Subdomain()",
                "format.dns1035Label()",
                "format.qualifiedName()",
                "format.dns1123LabelPrefix()",
                "format.dns1123SubdomainPrefix()",
                "format.dns1035LabelPrefix()",
                "format.labelValue()",
                "format.uri()",
                "format.uuid()",
                "format.byte()",
                "format.date()",
                "format.datetime()",
                "format.named('uuid').value()",
            ],
            _ => &["null"],
        },

        _ => &[],
    }
}
