//! Networks in CIDR notation, and the addresses that lie in them.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::error::EngineError;
use crate::full_text::query::terms::token_test::TokenTest;

/// Bits of the prefix `::ffff:` of version 4 addresses that are written as version 6.
const MAPPED_BITS: u8 = 96;

/// The addresses of a network. Version 4 addresses that are written as version 6 are of version 4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network(IpNet);

impl Network {
    /// `10.0.0.0/8`, `2001:db8::/32`, or one address. Bits behind the prefix are ignored. `::ffff:10.0.0.0/104` is
    /// `10.0.0.0/8`: behind an address that is written as version 6, the prefix counts all of its 128 bits.
    pub fn parse(text: &str) -> Result<Self, EngineError> {
        let invalid = || EngineError::new("invalid_query", format!("\"{text}\" is not a network such as 10.0.0.0/8"));
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let written: IpAddr = address.parse().map_err(|_| invalid())?;
        let address = written.to_canonical();
        let Some(bits) = bits else { return Ok(Self(IpNet::from(address))) };
        if !bits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(invalid());
        }
        let bits: u8 = bits.parse().map_err(|_| invalid())?;
        let mapped = if address.is_ipv4() && written.is_ipv6() { MAPPED_BITS } else { 0 };
        let bits = bits.checked_sub(mapped).ok_or_else(|| {
            let what = format!("counts 128 bits: from {mapped} on, or write it as 10.0.0.0/8");
            EngineError::new("invalid_query", format!("the prefix of \"{text}\" {what}"))
        })?;
        IpNet::new(address, bits).map(Self).map_err(|_| invalid())
    }

    /// Whether `text` is an address of the network. Version 4 and version 6 do not mix.
    pub fn contains(&self, text: &str) -> bool {
        text.parse::<IpAddr>().is_ok_and(|address| self.0.contains(&address.to_canonical()))
    }
}

/// Bytes of the longest text of an address.
const ADDRESS_BYTES_MAX: usize = 45;

/// Walks every token that may be an address, by its characters; the state is how many have gone by.
impl TokenTest for Network {
    type State = usize;

    fn start(&self) -> Result<Option<usize>, EngineError> {
        Ok(Some(0))
    }

    fn step(&self, length: usize, byte: u8) -> Result<Option<usize>, EngineError> {
        let belongs = byte.is_ascii_hexdigit() || matches!(byte, b'.' | b':');
        Ok((belongs && length < ADDRESS_BYTES_MAX).then_some(length + 1))
    }

    fn accepts(&self, length: usize) -> Result<bool, EngineError> {
        Ok(length > 0)
    }

    fn distance(&self, token: &[u8]) -> Option<usize> {
        std::str::from_utf8(token).is_ok_and(|text| self.contains(text)).then_some(0)
    }
}

#[cfg(test)]
mod tests {
    use super::Network;

    #[test]
    fn addresses_in_networks() {
        for (network, address, is_in) in [
            ("10.0.0.0/8", "10.255.0.1", true),
            ("10.0.0.0/8", "11.0.0.1", false),
            ("10.9.9.9/8", "10.1.1.1", true),
            ("10.1.2.3", "10.1.2.3", true),
            ("10.1.2.3", "10.1.2.4", false),
            ("0.0.0.0/0", "255.1.1.1", true),
            ("0.0.0.0/0", "2001:db8::1", false),
            ("::/0", "2001:db8::1", true),
            ("::/0", "1.2.3.4", false),
            ("2001:db8::/33", "2001:db8:7fff::1", true),
            ("2001:db8::/33", "2001:db8:8000::1", false),
            ("10.0.0.0/8", "::ffff:10.0.0.1", true),
            ("10.0.0.0/8", "10.0.0.1x", false),
            ("::ffff:10.0.0.0/104", "10.255.0.1", true),
            ("::ffff:10.0.0.0/104", "::ffff:10.9.9.9", true),
            ("::ffff:10.0.0.0/104", "11.0.0.1", false),
            ("::ffff:0:0/96", "255.1.1.1", true),
            ("::ffff:0:0/96", "2001:db8::1", false),
            ("::ffff:10.1.2.3/128", "10.1.2.4", false),
            ("::ffff:10.1.2.3", "10.1.2.3", true),
        ] {
            assert_eq!(Network::parse(network).expect("a network").contains(address), is_in, "{network} {address}");
        }
    }

    #[test]
    fn what_is_no_network() {
        for text in [
            "",
            "10.0.0/8",
            "10.0.0.0/33",
            "10.0.0.0/",
            "10.0.0.0/+8",
            "::1/129",
            "soup",
            "10.0.0.0/8/9",
            "::ffff:10.0.0.0/8",
            "::ffff:10.0.0.0/129",
        ] {
            assert_eq!(Network::parse(text).expect_err("refused").code, "invalid_query", "{text}");
        }
    }
}
