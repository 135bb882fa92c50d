//! IP networks, with the texts of Go's `netip`.

mod table;

pub(super) use table::FUNCTIONS;

mod run {
    use std::net::IpAddr;

    use coracle_api::go_text::Quoted;
    use coracle_api::ip::Network;

    use crate::declare::NativeResult;
    use crate::eval::{Context, EvalError};
    use crate::library::args::{extra, made, text};
    use crate::library::ip::{parse_address, parse_ip};
    use crate::value::{Cidr, Extra, Value};

    fn network(args: &[Value<'_>], index: usize) -> Result<Cidr, EvalError> {
        match extra(args, index)? {
            Extra::Cidr(network) => Ok(*network),
            _ => Err(EvalError::NoSuchOverload),
        }
    }

    fn range(network: Cidr) -> Network {
        Network {
            address: network.address,
            bits: network.bits,
        }
    }

    fn parse(text: &str) -> Result<Cidr, String> {
        let refused = |why: String| {
            format!(
                "network address parse error during conversion from string: netip.ParsePrefix({}): {why}",
                Quoted(text)
            )
        };
        let Some((address, bits)) = text.rsplit_once('/') else {
            return Err(refused("no '/'".to_owned()));
        };
        let (address, zone) = parse_address(address).map_err(refused)?;
        if zone.is_some() {
            return Err(refused(
                "IPv6 zones cannot be present in a prefix".to_owned(),
            ));
        }
        let digits = bits.bytes().all(|byte| byte.is_ascii_digit());
        let leading = bits.len() > 1 && !(b'1'..=b'9').contains(&bits.as_bytes()[0]);
        if leading || bits.is_empty() || !digits {
            return Err(refused(format!("bad bits after slash: {}", Quoted(bits))));
        }
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits.parse::<u8>() {
            Ok(bits) if bits <= most => bits,
            _ => return Err(refused("prefix length out of range".to_owned())),
        };

        if matches!(address, IpAddr::V6(address) if address.to_ipv4_mapped().is_some()) {
            return Err(format!(
                "IPv4-mapped IPv6 address {} is not allowed",
                Quoted(text)
            ));
        }
        Ok(Cidr { address, bits })
    }

    fn parsed(text: &str) -> Result<Cidr, EvalError> {
        parse(text).map_err(|why| {
            EvalError::failed(format!(
                "network address parse error during conversion from string: {why}"
            ))
        })
    }

    pub(super) fn cidr<'a>(_: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
        parsed(text(args, 0)?).map(|network| made(Extra::Cidr(network)))
    }

    pub(super) fn is_cidr<'a>(_: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
        Ok(Value::Bool(parse(text(args, 0)?).is_ok()))
    }

    pub(super) fn to_string<'a>(_: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
        let network = network(args, 0)?;
        Ok(Value::string(&format!(
            "{}/{}",
            network.address, network.bits
        )))
    }

    pub(super) fn ip<'a>(_: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
        Ok(made(Extra::Ip(network(args, 0)?.address)))
    }

    pub(super) fn prefix_length<'a>(_: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
        Ok(Value::Int(network(args, 0)?.bits.into()))
    }

    pub(super) fn masked<'a>(_: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
        let network = network(args, 0)?;
        let address = range(network).first();
        Ok(made(Extra::Cidr(Cidr { address, ..network })))
    }

    pub(super) fn contains_ip<'a>(_: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
        let network = network(args, 0)?;
        let address = match &args[1] {
            // Upstream loses the reason.
            Value::String(text) => parse_ip(text).map_err(|_| EvalError::NoSuchOverload)?,
            _ => match extra(args, 1)? {
                Extra::Ip(address) => *address,
                _ => return Err(EvalError::NoSuchOverload),
            },
        };
        Ok(Value::Bool(range(network).contains(address)))
    }

    pub(super) fn contains_cidr<'a>(_: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
        let outer = network(args, 0)?;
        let inner = match &args[1] {
            Value::String(text) => parsed(text)?,
            _ => network(args, 1)?,
        };
        let inside = outer.bits <= inner.bits && range(outer).contains(inner.address);
        Ok(Value::Bool(inside))
    }
}
