//! Subjects built in DER: in each string type, in every order, and malformed.

use super::*;

const UTF8: u8 = 0x0c;
const PRINTABLE: u8 = 0x13;
const T61: u8 = 0x14;
const BMP: u8 = 0x1e;
const UNIVERSAL: u8 = 0x1c;
const INTEGER: u8 = 0x02;

fn value(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = match u8::try_from(content.len()).unwrap() {
        short @ ..0x80 => vec![short],
        long => vec![0x81, long],
    };
    [&[tag], &length[..], content].concat()
}

fn attribute(kind: &[u8], tag: u8, content: &[u8]) -> Vec<u8> {
    value(
        SEQUENCE,
        &[value(OBJECT_IDENTIFIER, kind), value(tag, content)].concat(),
    )
}

/// A subject of one set for each list of attributes.
fn name(sets: &[&[Vec<u8>]]) -> Vec<u8> {
    let sets: Vec<u8> = sets
        .iter()
        .flat_map(|set| value(SET, &set.concat()))
        .collect();
    value(SEQUENCE, &sets)
}

fn common_name(tag: u8, content: &[u8]) -> Vec<u8> {
    attribute(COMMON_NAME, tag, content)
}

#[test]
fn a_common_name_is_read_in_every_type_of_string() {
    let check = |tag, content: &[u8], expected: Result<&str, TextError>| {
        let read = CertificateSubject::from_der(&name(&[&[common_name(tag, content)]]));
        let expected = expected.map(str::to_owned).map_err(SubjectError::from);
        assert_eq!(
            read.map(|subject| subject.common_name),
            expected,
            "{tag:#x} {content:x?}"
        );
    };

    let invalid = |name| Err(TextError::Invalid(name));
    check(UTF8, "bjørn".as_bytes(), Ok("bjørn"));
    check(UTF8, b"bj\xf8rn", invalid("UTF-8 string"));
    check(
        PRINTABLE,
        b"system:node:n (1) *&",
        Ok("system:node:n (1) *&"),
    );

    check(PRINTABLE, b"bob@example", invalid("PrintableString"));
    check(T61, b"bj\xf8rn", Ok("bjørn"));
    check(0x16, b"bob@example", Ok("bob@example"));
    check(0x16, b"bj\xf8rn", invalid("IA5String"));
    check(0x12, b"007 1", Ok("007 1"));
    check(0x12, b"0x7", invalid("NumericString"));
    check(BMP, b"\0b\0o\0b", Ok("bob"));
    check(BMP, b"\0b\0o\0b\0\0", Ok("bob"));
    check(BMP, b"\x26\x03", Ok("☃"));

    for broken in [&b"\0b\0"[..], b"\xd8\x00\xdc\x00", b"\xff\xff", b"\xfd\xd0"] {
        check(BMP, broken, invalid("BMPString"));
    }

    check(
        UNIVERSAL,
        b"\0\0\0b",
        Err(TextError::Unsupported(UNIVERSAL)),
    );

    check(INTEGER, b"\x07", Err(TextError::Unsupported(INTEGER)));
    check(0x04, b"bob", Err(TextError::Unsupported(4)));
}

#[test]
fn of_several_common_names_the_last_counts_whatever_its_type() {
    let check = |sets: &[&[Vec<u8>]], expected: &str| {
        assert_eq!(
            CertificateSubject::from_der(&name(sets))
                .unwrap()
                .common_name,
            expected
        );
    };

    let (admin, bob) = (common_name(UTF8, b"admin"), common_name(BMP, b"\0b\0o\0b"));
    check(
        &[std::slice::from_ref(&admin), std::slice::from_ref(&bob)],
        "bob",
    );

    check(
        &[std::slice::from_ref(&bob), std::slice::from_ref(&admin)],
        "admin",
    );

    check(&[&[admin.clone(), bob]], "bob");
    check(&[&[admin.clone(), common_name(T61, b"eve")]], "eve");
    check(
        &[std::slice::from_ref(&admin), &[common_name(UTF8, b"")]],
        "",
    );

    check(&[], "");
}

#[test]
fn an_attribute_that_cannot_be_read_refuses_the_subject() {
    let country: &[u8] = &[0x55, 4, 6];
    let admin = common_name(UTF8, b"admin");
    for broken in [
        common_name(UNIVERSAL, b"\0\0\0b"),
        attribute(ORGANIZATION, UTF8, b"\xff"),
        attribute(country, INTEGER, b"\x01"),
    ] {
        for order in [
            [admin.clone(), broken.clone()],
            [broken.clone(), admin.clone()],
        ] {
            let refused = CertificateSubject::from_der(&name(&[&order]));
            assert!(matches!(refused, Err(SubjectError::Text(_))), "{refused:?}");
        }
    }
}

#[test]
fn a_subject_that_is_not_der_is_refused() {
    let good = name(&[&[common_name(UTF8, b"bob")]]);
    let long_way_round = [0x55, 4, 0x80, 3];
    let broken = [
        Vec::new(),
        value(SET, &[]),
        good[..good.len() - 1].to_vec(),
        [&good[..], b"\0"].concat(),
        name(&[&[attribute(&long_way_round, UTF8, b"bob")]]),
        name(&[&[attribute(&[0x55, 4, 0x83], UTF8, b"bob")]]),
        name(&[&[attribute(&[], UTF8, b"bob")]]),
        name(&[&[value(SEQUENCE, &value(OBJECT_IDENTIFIER, COMMON_NAME))]]),
        name(&[&[value(
            SEQUENCE,
            &[common_name(UTF8, b"bob"), common_name(UTF8, b"bob")].concat(),
        )]]),
        // Lengths that are not minimal, indefinite, or longer than the input.
        vec![SEQUENCE, 0x81, 0],
        vec![SEQUENCE, 0x80, 0, 0],
        vec![SEQUENCE, 0x84, 0xff, 0xff, 0xff, 0xff],
        vec![SEQUENCE, 0x82, 0, 0x80],
        vec![0x3f, 0x10, 0],
    ];

    for der in broken {
        assert_eq!(
            CertificateSubject::from_der(&der),
            Err(SubjectError::Malformed),
            "{der:x?}"
        );
    }

    // No truncated input is accepted, and none panics.
    for end in 0..good.len() {
        assert!(CertificateSubject::from_der(&good[..end]).is_err(), "{end}");
    }
}

#[test]
fn the_user_has_the_organizations_as_groups_and_one_uid_at_most() {
    let [bob, team] = [
        common_name(UTF8, b"bob"),
        attribute(ORGANIZATION, PRINTABLE, b"team"),
    ];

    let uid = |text: &[u8]| attribute(UID, UTF8, text);
    let user = |attributes: &[Vec<u8>]| {
        CertificateSubject::from_der(&name(&[attributes]))
            .unwrap()
            .user()
    };

    let expected = |uid: &str, groups: &[&str]| {
        let groups = groups.iter().map(ToString::to_string).collect();
        Ok(Some(CertificateUser {
            name: "bob".into(),
            uid: uid.into(),
            groups,
        }))
    };

    let other = attribute(ORGANIZATION, BMP, b"\0t\x01\x65");
    assert_eq!(
        user(&[team.clone(), bob.clone(), other]),
        expected("", &["team", "tť"])
    );

    assert_eq!(user(&[bob.clone(), uid(b"7")]), expected("7", &[]));
    assert_eq!(user(&[bob.clone(), uid(b"")]), Err(SubjectError::EmptyUid));
    assert_eq!(
        user(&[bob, uid(b"7"), uid(b"7")]),
        Err(SubjectError::SeveralUids)
    );

    assert_eq!(
        user(&[team, uid(b"7"), uid(b"7")]),
        Ok(None),
        "no user is named"
    );
}

#[test]
fn long_lengths_are_read() {
    let long = [b'x'; 200];
    let read = CertificateSubject::from_der(&name(&[&[common_name(UTF8, &long)]]));
    assert_eq!(read.unwrap().common_name.as_bytes(), long);
}
