//! Whose certificates are accepted.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use super::settings::{TlsSettings, certificates};

#[derive(Debug)]
struct Trust {
    /// None: any certificate will do.
    checked: Option<Arc<WebPkiServerVerifier>>,
    /// Those that were given by hand.
    given: Vec<CertificateDer<'static>>,
    provider: Arc<CryptoProvider>,
}

/// What `settings` trust. Err says what is wrong with the file, or that the system trusts nobody.
pub fn verifier(
    settings: &TlsSettings,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, String> {
    let mut trust = Trust {
        checked: None,
        given: Vec::new(),
        provider: Arc::clone(provider),
    };
    if settings.insecure {
        return Ok(Arc::new(trust));
    }
    let mut roots = RootCertStore::empty();
    match &settings.ca {
        Some(pem) => trust.given = certificates(pem, "ca")?,
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    // What is no authority may be the server's own, which is looked for by itself.
    roots.add_parsable_certificates(trust.given.iter().cloned());
    if roots.is_empty() {
        return Err(match settings.ca {
            Some(_) => "`ca` has no certificate that can be read".into(),
            None => "this system has no certificates of authorities to trust: install them \
                     (Debian: ca-certificates), or give your own with `ca`"
                .into(),
        });
    }
    let checked =
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
    trust.checked = Some(checked.build().map_err(|error| error.to_string())?);
    Ok(Arc::new(trust))
}

impl ServerCertVerifier for Trust {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(checked) = &self.checked else {
            return Ok(ServerCertVerified::assertion());
        };
        let verdict =
            checked.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match verdict {
            // A server's own certificate that was given by hand is good although it says of itself
            // that it is an authority, as those of `openssl req -x509` do. That it is valid now was
            // looked at before.
            Err(Error::InvalidCertificate(CertificateError::Other(_)))
                if self.given.contains(end_entity) =>
            {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            verdict => verdict,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, cert, dss, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, cert, dss, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let known = &self.provider.signature_verification_algorithms;
        known.supported_schemes()
    }
}
