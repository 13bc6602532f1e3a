//! What is said of settings and of failures; real servers are asked by tests/test_tls.py.

use rustls::pki_types::UnixTime;
use rustls::{AlertDescription, CertificateError, Error, InvalidMessage};

use super::*;
use crate::sample::Outcome;

fn refused(settings: TlsSettings) -> String {
    Tls::new(&settings, true).err().expect("it is refused")
}

#[test]
fn what_is_no_certificate_key_or_name_is_said_by_its_setting() {
    let ca = refused(TlsSettings {
        ca: Some(b"hello".to_vec()),
        ..TlsSettings::default()
    });
    assert!(ca.starts_with("`ca` has no certificate"), "{ca}");
    let cert = refused(TlsSettings {
        insecure: true,
        identity: Some((vec![], vec![])),
        ..TlsSettings::default()
    });
    assert!(cert.starts_with("`cert` has no certificate"), "{cert}");
    let name = refused(TlsSettings {
        insecure: true,
        names: vec!["no name".into()],
        ..TlsSettings::default()
    });
    assert!(name.contains("no name"), "{name}");
}

#[test]
fn addresses_and_names_are_what_certificates_are_for() {
    let names = ["127.0.0.1", "[::1]", "::1", "search.example"];
    let tls = Tls::new(
        &TlsSettings {
            insecure: true,
            names: names.map(String::from).to_vec(),
            ..TlsSettings::default()
        },
        false,
    );
    assert_eq!(tls.unwrap().targets(), 4);
}

#[test]
fn each_failure_is_a_sentence_with_the_name() {
    let at = |days: u64| UnixTime::since_unix_epoch(std::time::Duration::from_secs(days * 86_400));
    let certificate = |reason| Error::InvalidCertificate(reason);
    for (error, outcome, words) in [
        (
            certificate(CertificateError::ExpiredContext {
                time: at(30),
                not_after: at(20),
            }),
            Outcome::Refused,
            "the certificate of h expired 10 days ago",
        ),
        (
            certificate(CertificateError::UnknownIssuer),
            Outcome::Refused,
            "h is signed by nobody whom this machine trusts",
        ),
        (
            certificate(CertificateError::NotValidForNameContext {
                expected: "h".try_into().unwrap(),
                presented: vec!["DnsName(\"a.example\")".into()],
            }),
            Outcome::Refused,
            "not for h but for a.example: ",
        ),
        (
            Error::AlertReceived(AlertDescription::CertificateRequired),
            Outcome::Refused,
            "h wants a certificate from its clients",
        ),
        (
            Error::InvalidMessage(InvalidMessage::InvalidContentType),
            Outcome::Malformed,
            "h does not speak TLS",
        ),
    ] {
        let (kind, said) = failure::told(&error, "h");
        assert_eq!(kind, outcome, "{said}");
        assert!(said.contains(words), "{said}");
    }
}
