//! The certificate authority of the test web. It signs a leaf certificate at the first handshake of each name.
//!
//! All leaves share one key, so each leaf costs only one signature, and tens of thousands of names are cheap.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::Context;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose,
    PKCS_ECDSA_P256_SHA256, date_time_ymd,
};
use rustls::{crypto::ring, pki_types::PrivateKeyDer, sign::CertifiedKey};

use crate::Certificate;

/// The name in a certificate for another host.
const ANOTHER_NAME: &str = "another.example";

pub(crate) struct Authority {
    trusted: CertifiedIssuer<'static, KeyPair>,
    unknown: CertifiedIssuer<'static, KeyPair>,
    leaf_key: KeyPair,
    signer: Arc<dyn rustls::sign::SigningKey>,
    leaves: Mutex<HashMap<(String, Certificate), Arc<CertifiedKey>>>,
}

impl Authority {
    pub(crate) fn new() -> anyhow::Result<Self> {
        let leaf_key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).context("cannot make the leaf key")?;
        let der = PrivateKeyDer::Pkcs8(leaf_key.serialize_der().into());
        let signer = ring::sign::any_ecdsa_type(&der).context("cannot use the leaf key")?;
        Ok(Self {
            trusted: issuer("agentdex test web authority")?,
            unknown: issuer("an untrusted authority")?,
            leaf_key,
            signer,
            leaves: Mutex::default(),
        })
    }

    /// The authority's certificate, for `--ca-file`.
    pub(crate) fn pem(&self) -> String {
        self.trusted.pem()
    }

    /// The leaf certificate of a name, from the cache or newly signed.
    pub(crate) fn leaf(&self, name: &str, kind: Certificate) -> Option<Arc<CertifiedKey>> {
        let mut leaves = self.leaves.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (name.to_owned(), kind);
        if let Some(leaf) = leaves.get(&key) {
            return Some(Arc::clone(leaf));
        }
        let leaf = Arc::new(self.sign(name, kind).ok()?);
        leaves.insert(key, Arc::clone(&leaf));
        Some(leaf)
    }

    fn sign(&self, name: &str, kind: Certificate) -> Result<CertifiedKey, rcgen::Error> {
        let name = if kind == Certificate::WrongName { ANOTHER_NAME } else { name };
        let mut params = CertificateParams::new(vec![name.to_owned()])?;
        params.distinguished_name.push(DnType::CommonName, name);
        (params.not_before, params.not_after) = match kind {
            Certificate::Expired => (date_time_ymd(2000, 1, 1), date_time_ymd(2001, 1, 1)),
            Certificate::NotYetValid => (date_time_ymd(2090, 1, 1), date_time_ymd(2095, 1, 1)),
            _ => (date_time_ymd(2020, 1, 1), date_time_ymd(2095, 1, 1)),
        };
        let certificate = match kind {
            Certificate::SelfSigned => params.self_signed(&self.leaf_key)?,
            Certificate::UnknownAuthority => params.signed_by(&self.leaf_key, &self.unknown)?,
            _ => params.signed_by(&self.leaf_key, &self.trusted)?,
        };
        Ok(CertifiedKey::new(vec![certificate.der().clone()], Arc::clone(&self.signer)))
    }
}

fn issuer(name: &str) -> anyhow::Result<CertifiedIssuer<'static, KeyPair>> {
    let mut params = CertificateParams::new(Vec::new()).context("cannot describe the authority")?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.distinguished_name.push(DnType::CommonName, name);
    (params.not_before, params.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(2095, 1, 1));
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).context("cannot make the authority's key")?;
    CertifiedIssuer::self_signed(params, key).context("cannot sign the authority's certificate")
}
