//! What can be said of how connections are secured, and the certificates in a file.

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

/// How connections are secured. Files are PEM, as their contents; the key is never printed.
#[derive(Clone, Default)]
pub struct TlsSettings {
    /// By target: the name that its certificate must be for, and that it is asked by (SNI).
    pub names: Vec<String>,
    /// Authorities (or the server's own certificate) to trust; None: those of the system.
    pub ca: Option<Vec<u8>>,
    /// Our certificate with what leads to its authority, and its key.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
    /// Any certificate will do.
    pub insecure: bool,
}

/// The certificates of a PEM file, at least one.
pub fn certificates(pem: &[u8], setting: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        _ => Err(format!(
            "`{setting}` has no certificate in PEM (-----BEGIN CERTIFICATE-----)"
        )),
    }
}
