//! Tables from upstream's behaviour, and arithmetic against big rationals.

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{Signed, Zero};
use proptest::prelude::*;

use super::*;

fn read(text: &str) -> Quantity {
    text.parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn recanonicalized(text: &str) -> String {
    let mut quantity = read(text);
    quantity.neg();
    quantity.neg();
    quantity.to_string()
}

#[test]
fn a_text_prints_as_upstream_prints_it() {
    let check = |text: &str, expected: &str| assert_eq!(read(text).to_string(), expected, "{text}");
    check("0", "0");
    check("0Ki", "0");
    check("-0", "0");
    check("100m", "100m");
    check("1000m", "1");
    check("1.5", "1500m");

    check("0.5Gi", "512Mi");
    check("1.5Gi", "1536Mi");
    check("1024", "1024");
    check("1024Ki", "1Mi");
    check("1000Ki", "1000Ki");
    check("512Ki", "512Ki");
    check("0.1Ki", "102400m");

    check("0.0001Ki", "102400u");
    check("12e6", "12e6");
    check("12000000e0", "12e6");
    check("1E3", "1E3");
    check("0.1n", "1n");
    check("1e-15", "1e-9");
    check("-1.0000000001", "-1000000001n");

    check("9Ei", "9223372036854775807");
    check("8Ei", "9223372036854775807");
    check("7Ei", "7Ei");
    check("-9Ei", "-9223372036854775807");
    check("1e100", "10e99");
    check(
        "999999999999999999999999999999",
        "999999999999999999999999999999",
    );

    // Acceptable texts are kept, even unusual ones.
    check("1.234", "1.234");
    check("+1", "+1");
    check("007", "007");
    check("1.", "1.");
    check(".", "0");
    check("Ki", "0");
}

#[test]
fn arithmetic_makes_the_canonical_form() {
    let check = |text: &str, expected: &str| assert_eq!(recanonicalized(text), expected, "{text}");
    check("1.234", "1234m");
    check("+1", "1");
    check("1E3", "1e3");
    check("1100Ki", "1100Ki");
    check("500Ki", "500Ki");

    check("-2Mi", "-2Mi");
    check("1000000", "1M");
    check("100000", "100k");
    check("123456789", "123456789");
    check("0.000001", "1u");

    // Upstream drops the power where no letter represents it, and with it most of the amount.
    check("1000E", "1e21");
}

#[test]
fn invalid_quantities_are_refused_in_upstreams_words() {
    let check = |text: &str, expected| {
        assert_eq!(text.parse::<Quantity>(), Err(expected), "{text}");
    };
    for text in [
        "", " ", "1 ", "abc", "1x", "1..2", "1Ki5x", "é", "1e3.5", "0x1", "NaN",
    ] {
        check(text, QuantityError::Format);
    }

    for text in [
        "--1",
        "1e",
        "1ki",
        "1mi",
        "1KiMi",
        "1i",
        "1K",
        "1-",
        "1e99999999999999999999",
        "1e1000000001",
    ] {
        check(text, QuantityError::Suffix);
    }

    check("Ei", QuantityError::Numeric);
    check("e-10", QuantityError::Numeric);
    let texts = [
        QuantityError::Format,
        QuantityError::Numeric,
        QuantityError::Suffix,
    ]
    .map(|error| error.to_string());

    assert_eq!(
        texts,
        [
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
            "unable to parse numeric part of quantity",
            "unable to parse quantity's suffix",
        ]
    );
}

#[test]
fn values_round_away_from_zero_and_are_capped() {
    let check = |text: &str, value, milli| {
        assert_eq!(
            (read(text).value(), read(text).milli_value()),
            (value, milli),
            "{text}"
        );
    };

    check("0", 0, 0);
    check("1m", 1, 1);
    check("-1m", -1, -1);
    check("1500m", 2, 1500);
    check("1.0001", 2, 1001);
    check("1Ki", 1024, 1_024_000);
    check("1e30", i64::MAX, i64::MAX);
    check("-1e30", i64::MIN, i64::MIN);

    check("1e-9", 1, 1);
    check("9223372036854775807", i64::MAX, i64::MAX);
    assert_eq!(read("1500m").as_i64(), None);
    assert_eq!(read("1000m").as_i64(), None);
    assert_eq!(read("1.5Gi").as_i64(), None);
    assert_eq!(read("1.5k").as_i64(), Some(1500));
    assert_eq!(read("15e2").as_i64(), Some(1500));
    assert_eq!(read("1e19").as_i64(), None);
    assert_eq!(read("2500m").to_f64(), 2.5);
}

#[test]
fn rounding_up_returns_whether_anything_was_lost() {
    let check = |text: &str, power, exact, expected: &str| {
        let mut quantity = read(text);
        assert_eq!(quantity.round_up(power), exact, "{text}");
        assert_eq!(quantity.to_string(), expected, "{text}");
    };
    check("1.234", MILLI, true, "1.234");
    check("1.2345", MILLI, false, "1235m");
    check("-1.2345", MILLI, false, "-1235m");
    check("123", 2, false, "200");
    check("1n", 0, false, "1");
}

#[test]
fn a_sum_to_zero_takes_over_the_notation() {
    let mut sum = Quantity::default();
    sum.add(&read("1Mi"));
    assert_eq!(
        (sum.format(), sum.to_string()),
        (Format::BinarySi, "1Mi".to_owned())
    );

    sum.add(&read("1k"));
    assert_eq!(sum.to_string(), "1049576");

    sum.sub(&read("1000"));
    assert_eq!(sum.to_string(), "1Mi");

    sum.mul(3);
    assert_eq!(sum.to_string(), "3Mi");
}

#[test]
fn a_number_without_quotes_is_a_quantity_too() {
    let from = |value: Value| Quantity::from_value(&value).map(|quantity| quantity.to_string());
    assert_eq!(from(Value::Int(2)).as_deref(), Ok("2"));
    assert_eq!(from(Value::Float(0.5)).as_deref(), Ok("500m"));
    assert_eq!(from(Value::string(" 1Gi ")).as_deref(), Ok("1Gi"));
    assert_eq!(from(Value::Null).as_deref(), Ok("0"));
    assert_eq!(from(Value::Bool(true)), Err(QuantityError::Format));
}

/// The amount as a big rational, parsed independently.
fn exact(text: &str) -> BigRational {
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };

    let offset = text
        .find(|next: char| next != '.' && !next.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, suffix) = text.split_at(offset);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits: BigInt = format!("0{whole}{fraction}").parse().unwrap();
    let power = |base: i32, exponent: i32| BigRational::from(BigInt::from(base)).pow(exponent);

    let letters = "num kMGTPE";
    let factor = match (suffix.strip_suffix('i'), letters.find(suffix)) {
        (Some(binary), _) => power(
            1024,
            i32::try_from("KMGTPE".find(binary).unwrap()).unwrap() + 1,
        ),
        (None, _) if suffix.is_empty() => power(10, 0),
        (None, Some(offset)) => power(1000, i32::try_from(offset).unwrap() - 3),
        (None, None) => power(10, suffix[1..].parse().unwrap()),
    };
    let amount = BigRational::from(digits) / power(10, fraction.len().try_into().unwrap()) * factor;

    if negative { -amount } else { amount }
}

/// The expected result of the parser: rounded up to a nano, binary amounts capped.
fn expected(text: &str) -> BigRational {
    let (amount, nano) = (exact(text), BigRational::from(BigInt::from(1_000_000_000)));
    let scaled = &amount * &nano;
    let rounded = if amount.is_negative() {
        scaled.floor()
    } else {
        scaled.ceil()
    } / nano;

    let cap = BigRational::from(BigInt::from(i64::MAX));
    match text.ends_with('i') && rounded.abs() > cap {
        true if rounded.is_negative() => -cap,
        true => cap,
        false => rounded,
    }
}

fn texts() -> impl Strategy<Value = String> {
    "-?[0-9]{1,9}(\\.[0-9]{0,12})?(|n|u|m|k|M|E|Ki|Gi|Ei|e-?[0-9])"
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn reading_is_exact_down_to_a_nano(text in texts()) {
        prop_assert_eq!(exact(&recanonicalized(&text)), expected(&text));
        prop_assert_eq!(exact(&read(&text).to_string()), expected(&text));
    }

    #[test]
    fn arithmetic_and_order_are_those_of_rationals(one in texts(), other in texts(), factor in -1000i64..1000) {
        let (a, b) = (expected(&one), expected(&other));
        let result = |operation: fn(&mut Quantity, &Quantity)| {
            let mut quantity = read(&one);
            operation(&mut quantity, &read(&other));
            exact(&quantity.to_string())
        };
        prop_assert_eq!(result(Quantity::add), &a + &b);
        prop_assert_eq!(result(Quantity::sub), &a - &b);
        prop_assert_eq!(read(&one).cmp(&read(&other)), a.cmp(&b));
        let mut product = read(&one);
        product.mul(factor);
        prop_assert_eq!(exact(&product.to_string()), a * BigRational::from(BigInt::from(factor)));
    }

    #[test]
    fn numbers_with_too_many_digits_are_compared_exactly_and_added_approximately(
        one in "[1-9][0-9]{0,36}", other in "[1-9][0-9]{0,36}", power in 0..60i32, factor in 1i64..,
    ) {
        let (one, other) = (format!("{one}e{power}"), format!("-{other}e9"));
        let (a, b) = (exact(&one), exact(&other));
        prop_assert_eq!(read(&one).cmp(&read(&other)), a.cmp(&b));
        let tolerance = BigRational::from(BigInt::from(10)).pow(-34) * a.abs().max(b.abs());
        let mut sum = read(&one);
        sum.add(&read(&other));
        prop_assert!((exact(&sum.to_string()) - (&a + &b)).abs() <= tolerance);
        let mut product = read(&one);
        product.mul(factor);
        let expected = &a * BigRational::from(BigInt::from(factor));
        prop_assert!((exact(&product.to_string()) / expected - BigRational::from(BigInt::from(1))).abs() <= tolerance / a);
    }

    #[test]
    fn values_are_the_rounded_rationals(text in texts()) {
        let amount = expected(&text);
        let rounded = if amount.is_negative() { amount.floor() } else { amount.ceil() };
        let limit = if amount.is_negative() { i64::MIN } else { i64::MAX };
        prop_assert_eq!(read(&text).value(), rounded.to_integer().try_into().unwrap_or(limit));
        prop_assert_eq!(read(&text).is_zero(), amount.is_zero());
    }
}
