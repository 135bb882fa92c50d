//! IP addresses, with the texts of Go's `netip`.

mod parse;
mod table;

pub(super) use parse::{parse_address, parse_ip};
pub(super) use table::FUNCTIONS;

mod run {
    use std::net::IpAddr;

    use super::parse::parse_ip;
    use crate::declare::NativeResult;
    use crate::eval::{Context, EvalError};
    use crate::library::args::{extra, made, text};
    use crate::value::{Extra, Value};

    fn address(args: &[Value<'_>]) -> Result<IpAddr, EvalError> {
        match extra(args, 0)? {
            Extra::Ip(address) => Ok(*address),
            _ => Err(EvalError::NoSuchOverload),
        }
    }

    pub(super) fn ip<'a>(_: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
        parse_ip(text(args, 0)?)
            .map(|address| made(Extra::Ip(address)))
            .map_err(EvalError::failed)
    }

    pub(super) fn is_ip<'a>(_: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
        Ok(Value::Bool(parse_ip(text(args, 0)?).is_ok()))
    }

    pub(super) fn ip_is_canonical<'a>(_: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
        let text = text(args, 0)?;
        let address = parse_ip(text).map_err(EvalError::failed)?;
        Ok(Value::Bool(address.to_string() == text))
    }

    pub(super) fn to_string<'a>(_: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
        Ok(Value::string(&address(args)?.to_string()))
    }

    pub(super) fn family<'a>(_: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
        Ok(Value::Int(if address(args)?.is_ipv4() { 4 } else { 6 }))
    }

    pub(super) fn is_unspecified<'a>(_: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
        Ok(Value::Bool(address(args)?.is_unspecified()))
    }

    pub(super) fn is_loopback<'a>(_: &mut Context<'_>, args: &[Value<'a>]) -> NativeResult<'a> {
        Ok(Value::Bool(address(args)?.is_loopback()))
    }

    fn is_local_multicast(address: IpAddr) -> bool {
        match address {
            IpAddr::V4(address) => address.octets()[..3] == [224, 0, 0],
            IpAddr::V6(address) => address.segments()[0] & 0xff0f == 0xff02,
        }
    }

    fn is_local_unicast(address: IpAddr) -> bool {
        match address {
            IpAddr::V4(address) => address.is_link_local(),
            IpAddr::V6(address) => address.is_unicast_link_local(),
        }
    }

    pub(super) fn is_link_local_multicast<'a>(
        _: &mut Context<'_>,
        args: &[Value<'a>],
    ) -> NativeResult<'a> {
        Ok(Value::Bool(is_local_multicast(address(args)?)))
    }

    pub(super) fn is_link_local_unicast<'a>(
        _: &mut Context<'_>,
        args: &[Value<'a>],
    ) -> NativeResult<'a> {
        Ok(Value::Bool(is_local_unicast(address(args)?)))
    }

    pub(super) fn is_global_unicast<'a>(
        _: &mut Context<'_>,
        args: &[Value<'a>],
    ) -> NativeResult<'a> {
        let address = address(args)?;
        let broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
        let other = address.is_unspecified() || address.is_loopback() || address.is_multicast();
        Ok(Value::Bool(
            !broadcast && !other && !is_local_unicast(address),
        ))
    }
}
