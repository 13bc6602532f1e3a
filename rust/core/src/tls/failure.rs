//! Why a secured connection failed: what it counts as, and a sentence with the remedy.

use rustls::{AlertDescription, CertificateError, Error};

use crate::sample::Outcome;

const DAY_S: u64 = 86_400;

/// `name`: the server's, as it was asked by.
pub fn told(error: &Error, name: &str) -> (Outcome, String) {
    match error {
        Error::InvalidCertificate(reason) => (Outcome::Refused, certificate(reason, name)),
        Error::AlertReceived(alert) => (Outcome::Refused, alerted(*alert, name)),
        Error::PeerIncompatible(_) => (
            Outcome::Refused,
            format!(
                "{name} offers no version of TLS and no cipher that are spoken here, which are \
                 those of TLS 1.2 and 1.3 that are held to be safe"
            ),
        ),
        Error::InvalidMessage(_) => (
            Outcome::Malformed,
            format!(
                "what answers as {name} does not speak TLS; if it is asked in plain text, leave \
                 TLS away (http:// in place of https://)"
            ),
        ),
        other => (
            Outcome::Malformed,
            format!("TLS with {name} failed: {other}"),
        ),
    }
}

fn certificate(reason: &CertificateError, name: &str) -> String {
    match reason {
        CertificateError::Expired => {
            format!("the certificate of {name} has expired: renew it on the server")
        }
        CertificateError::ExpiredContext { time, not_after } => {
            let days = time.as_secs().saturating_sub(not_after.as_secs()) / DAY_S;
            let ago = match days {
                0 => "today".into(),
                1 => "yesterday".into(),
                days => format!("{days} days ago"),
            };
            format!("the certificate of {name} expired {ago}: renew it on the server")
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => format!(
            "the certificate of {name} is not valid yet: see that the clocks of both machines are \
             right"
        ),
        CertificateError::NotValidForName => {
            format!("the certificate is not for {name}: {OTHER_NAME}")
        }
        CertificateError::NotValidForNameContext { presented, .. } => {
            let names: Vec<&str> = presented.iter().map(|name| bare(name)).take(4).collect();
            let more = if presented.len() > 4 { ", ..." } else { "" };
            if names.is_empty() {
                format!(
                    "the certificate of {name} has no subject alternative name, and so is for \
                     nobody: make one that has, or drive without checking it (--insecure)"
                )
            } else {
                format!(
                    "the certificate is not for {name} but for {}{more}: {OTHER_NAME}",
                    names.join(", ")
                )
            }
        }
        CertificateError::UnknownIssuer => format!(
            "the certificate of {name} is signed by nobody whom this machine trusts: give its \
             authority's certificate with ca (--ca FILE), or drive without checking it \
             (--insecure)"
        ),
        // What stands behind it has no name outside rustls: an authority's certificate in the place
        // of a server's, which `openssl req -x509` makes.
        CertificateError::Other(other) if other.to_string().contains("CaUsedAsEndEntity") => {
            format!(
                "the certificate of {name} is signed by itself, and is none that was given: give it \
             with ca (--ca FILE), or drive without checking it (--insecure)"
            )
        }
        other => format!(
            "the certificate of {name} is not accepted: {other}; to drive without checking it, \
             give insecure (--insecure)"
        ),
    }
}

const OTHER_NAME: &str = "ask the server by a name that it is for, or say it with server_name \
                          (--server-name)";

/// `DnsName("a.example")` without what is around the name.
fn bare(presented: &str) -> &str {
    let inside = presented.split('"').nth(1);
    inside.unwrap_or(presented)
}

fn alerted(alert: AlertDescription, name: &str) -> String {
    use AlertDescription as A;
    match alert {
        A::CertificateRequired => format!(
            "{name} wants a certificate from its clients: give cert and key (--cert FILE --key \
             FILE)"
        ),
        A::BadCertificate
        | A::UnsupportedCertificate
        | A::CertificateRevoked
        | A::CertificateExpired
        | A::CertificateUnknown
        | A::UnknownCA
        | A::AccessDenied => {
            format!("{name} does not accept our client's certificate ({alert:?}): see cert and key")
        }
        A::HandshakeFailure | A::ProtocolVersion | A::InsufficientSecurity => format!(
            "{name} ended the handshake of TLS ({alert:?}): it speaks no version or cipher of TLS \
             1.2 and 1.3 that is spoken here, or wants a certificate from its clients (cert, key)"
        ),
        A::UnrecognisedName => format!("{name} knows no server of that name: {OTHER_NAME}"),
        other => format!("{name} ended TLS with the alert {other:?}"),
    }
}
