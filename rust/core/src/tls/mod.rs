//! TLS beneath a wire: what is trusted, who we say we are, and the state of each secured connection.
//!
//! ```text
//! settings  what can be said of it, and the certificates in a file
//! trust     whose certificates are accepted
//! secure    one connection: records of TLS on the one side, bytes of the wire on the other
//! failure   why it failed, in a sentence
//! ```

mod failure;
mod secure;
mod settings;
#[cfg(test)]
mod tests;
mod trust;

use std::sync::Arc;

use rustls::ClientConfig;
use rustls::client::UnbufferedClientConnection;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{PrivateKeyDer, ServerName};

pub(crate) use secure::Secure;
pub use settings::TlsSettings;
use settings::certificates;

/// What all connections of a drive share: also the sessions that the next one may resume.
pub struct Tls {
    config: Arc<ClientConfig>,
    names: Vec<(String, ServerName<'static>)>,
}

impl Tls {
    /// Err says what is wrong with a file or a name. `http`: that is what will be spoken (ALPN).
    pub fn new(settings: &TlsSettings, http: bool) -> Result<Tls, String> {
        let provider = Arc::new(ring::default_provider());
        let verifier = trust::verifier(settings, &provider)?;
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let mut config = match &settings.identity {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let chain = certificates(certificate, "cert")?;
                let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| {
                    "`key` has no private key in PEM (-----BEGIN PRIVATE KEY-----), or one with a \
                     passphrase, which is not asked for: take it off with `openssl pkey`"
                })?;
                builder.with_client_auth_cert(chain, key).map_err(|error| {
                    format!("`key` does not go with the certificate in `cert`: {error}")
                })?
            }
        };
        if http {
            config.alpn_protocols = vec![b"http/1.1".to_vec()];
        }
        let names = settings.names.iter().map(|name| {
            let bare = name.trim_matches(['[', ']']).to_string();
            match ServerName::try_from(bare) {
                Ok(known) => Ok((name.clone(), known)),
                Err(_) => Err(format!("{name:?} is no name that a certificate can be for")),
            }
        });
        Ok(Tls {
            names: names.collect::<Result<_, _>>()?,
            config: Arc::new(config),
        })
    }

    /// How many targets have a name.
    pub fn targets(&self) -> usize {
        self.names.len()
    }

    /// A new connection to a target, with the first words of its handshake to be sent.
    pub(crate) fn open(&self, target: u16) -> Result<Secure, String> {
        let (shown, name) = &self.names[usize::from(target)];
        UnbufferedClientConnection::new(Arc::clone(&self.config), name.clone())
            .map_err(|error| error.to_string())
            .and_then(|session| Secure::begin(session, shown))
    }
}
