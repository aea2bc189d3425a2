//! Reads manifests together with the documents that complete them (ARWS tools, a plugin's OpenAPI) if any of them changed.
//!
//! The manifest and its parts are requested separately, each with its own validators. If one of them changed, the bytes of the others come
//! from this visit or from the store, and the manifest is read again with all of them. Manifests that an earlier version of the reader read
//! are read again in the same way, from their stored copies. Only a manifest without a copy is requested without conditions for this.

use std::sync::Arc;

use chrono::SecondsFormat;
use manifest::model::Served;
use manifest::{ContentHash, Discovery, Manifest, ManifestId, ManifestUrl};
use policy::FetchOutcome;
use store::{ResourceState, StoreError, StoredManifest};

use super::Visit;
use super::context::Interrupt;
use super::fetched::{Document, Fetched};
use super::findings::{Findings, is_of_site, is_outdated, known};
use super::judge::{self, Judged};
use super::known_documents;
use super::links::{self, FollowUps};
use super::task::{NamedBy, Role, Task, Validators};
use crate::clock;
use crate::reading::Reading;
use crate::retry::retry_while_unavailable;
use runtime::OwnedDocument;

/// The copy of a document in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StoredCopy<Bytes = ()> {
    Whole(Bytes),
    /// There is no copy, or it may not be kept.
    Missing,
    /// The stored bytes do not match their hash: the document has to be fetched completely and replaced.
    Damaged,
}

impl Visit<'_> {
    /// Plans the parts of a manifest that did not change.
    pub(super) async fn follow_known_parts(&mut self, task: &Task) -> Result<(), StoreError> {
        let is_part_of = |known: &ResourceState| {
            known.manifest_id.is_none() && known.linked_from.as_ref() == Some(&task.url)
        };
        if task.role != Role::Manifest || !self.site.resources.iter().any(is_part_of) {
            return Ok(());
        }
        let Some(stored) = self.stored_manifest(&task.url).await? else {
            return Ok(());
        };
        let is_given_up = |url: &ManifestUrl| {
            let known = known(self.site, url).filter(|known| known.content_hash.is_none());
            known.is_some_and(known_documents::is_given_up)
        };
        let tasks = links::of_manifest(&stored.manifest).tasks.into_iter();
        let parts = tasks.filter(|task| task.role == Role::Part && !is_given_up(&task.url)).collect();
        let named_by = self.own_hosts.named_by_document(task);
        self.follow(FollowUps { tasks: parts, seeds: Vec::new() }, named_by);
        Ok(())
    }

    /// The stored copy of a known document. Pages are never stored. The copy of a part is used only if the last response had a document.
    pub(super) async fn copy_of(
        &self,
        task: &Task,
        known: Option<&ResourceState>,
    ) -> Result<StoredCopy, StoreError> {
        let has_copy = |known: &&ResourceState| match task.role {
            Role::Manifest => true,
            Role::Part => known.outcome.is_present(),
            _ => false,
        };
        let Some(known) = known.filter(has_copy) else { return Ok(StoredCopy::Missing) };
        let Some(hash) = known.content_hash.as_ref() else { return Ok(StoredCopy::Missing) };
        // drop the bytes, because a visit may hold the result for long
        Ok(match self.stored_copy(hash).await? {
            StoredCopy::Whole(_) => StoredCopy::Whole(()),
            StoredCopy::Missing => StoredCopy::Missing,
            StoredCopy::Damaged => StoredCopy::Damaged,
        })
    }

    /// Determines the role in which a known document is requested. A manifest in the index is read as a manifest and keeps its source, even
    /// if another manifest names it as a part. A document that was never received is a part if the document that links to it names it as
    /// one.
    pub(super) async fn keep_role(
        &mut self,
        task: &mut Task,
        known: &ResourceState,
    ) -> Result<(), StoreError> {
        let is_same_link = || task.linked_from.as_deref() == known.linked_from.as_ref();
        if task.role == Role::Part && known.manifest_id.is_some() {
            task.role = Role::Manifest;
            task.discovery = known.discovery;
            task.linked_from = known.linked_from.clone().map(Box::new);
        } else if task.role == Role::Manifest
            && known.manifest_id.is_none()
            && !known.outcome.is_present()
            && known.discovery != Discovery::Submitted
            && let Some(from) = known.linked_from.as_ref().filter(|_| is_same_link())
            && self.stored_parts(from).await?.contains(&task.url)
        {
            task.role = Role::Part;
        }
        Ok(())
    }

    /// The parts that a stored manifest names.
    async fn stored_parts(&mut self, url: &ManifestUrl) -> Result<&[ManifestUrl], StoreError> {
        if self.parts_of_stored.as_ref().is_none_or(|(of, _)| of != url) {
            let of_site = known(self.site, url).is_some_and(|known| known.manifest_id.is_some());
            let stored = if of_site { self.stored_manifest(url).await? } else { None };
            let tasks = stored.map(|stored| links::of_manifest(&stored.manifest).tasks).unwrap_or_default();
            let parts = tasks.into_iter().filter(|task| task.role == Role::Part).map(|task| task.url);
            self.parts_of_stored = Some((url.clone(), parts.collect()));
        }
        Ok(self.parts_of_stored.as_ref().map(|(_, parts)| parts.as_slice()).unwrap_or_default())
    }

    /// Decides how to request a known part that a link names as a manifest. If its stored copy is a manifest, or there is no copy, the
    /// document is requested without conditions and is indexed. A copy that is not a manifest stays a part, so that it is downloaded only
    /// when it changes. If only others name it as a manifest, it also stays a part of the site's manifest.
    pub(super) async fn read_part_as_manifest(
        &mut self,
        task: &mut Task,
        known: &ResourceState,
    ) -> Result<(), Interrupt> {
        if task.named_by == NamedBy::Others && self.own_hosts.names(&task.url) {
            keep_as_part(task, known);
            return Ok(());
        }
        if let Some(bytes) = self.stored_bytes(known.content_hash.as_ref()).await? {
            let document = Arc::new(OwnedDocument {
                bytes,
                url: task.url.clone(),
                final_url: None,
                discovery: task.discovery,
                served: None,
                linked: Vec::new(),
                force: None,
            });
            self.requester.memory.begin_document(task.is_link());
            let is_manifest = match Box::pin(self.read_within_memory(&document)).await? {
                Ok(Reading::Read { manifest, .. }) => judge::is_manifest(&document.bytes, &manifest),
                Ok(Reading::Quarantined(_)) | Err(_) => false,
            };
            self.requester.memory.drop_document();
            if !is_manifest {
                keep_as_part(task, known);
                return Ok(());
            }
        }
        task.validators = Validators::Omitted;
        Ok(())
    }

    /// Reads every manifest whose body or whose parts changed, and some of those that an earlier version of the reader read.
    pub(super) async fn read_together(&mut self) -> Result<(), Interrupt> {
        let outdated = self.outdated_in_turn();
        for index in 0..self.progress.findings.fetched.len() {
            self.read_one_together(index, outdated.contains(&index)).await?;
            self.compare_with_earlier_reading(index).await?;
        }
        Ok(())
    }

    /// Reads a manifest with its parts if its body or one of its parts changed, or if `is_outdated`.
    async fn read_one_together(&mut self, index: usize, is_outdated: bool) -> Result<(), Interrupt> {
        let whole = self.progress.findings.fetched.get(index);
        let is_present = |whole: &&Fetched| whole.role == Role::Manifest && whole.outcome.is_present();
        let Some(whole) = whole.filter(is_present) else { return Ok(()) };
        let url = whole.url.clone();
        let is_found = whole.outcome == FetchOutcome::Found || is_outdated;
        // keys of manifests that only others name must not affect the time of the next visit
        let decides = is_of_site(whole, &self.own_hosts);
        if is_found && whole.manifest.is_none() {
            self.read_with_parts(index, &url, &[]).await?;
            if !self.progress.findings.fetched.get(index).is_some_and(|whole| whole.outcome.is_present()) {
                return Ok(());
            }
        }
        if is_found {
            self.add_unrequested_parts(index);
        }
        let parts = self.parts_of(index, &url).await?;
        self.restrict_training(index, &url, &parts).await?;
        if parts.is_empty() {
            return Ok(());
        }
        let mut has_changed = is_found;
        for part in &parts {
            has_changed = has_changed || self.has_changed(*part).await?;
        }
        let unchanged = if has_changed { None } else { self.stored_manifest(&url).await? };
        let mut keys_expire_at = unchanged.and_then(|stored| stored.manifest.keys_expire_at());
        if has_changed || keys_expire_at.is_some_and(|end| end < clock::now()) {
            self.read_with_parts(index, &url, &parts).await?;
            let read = self.progress.findings.fetched.get(index).and_then(|whole| whole.manifest.as_ref());
            keys_expire_at = read.and_then(|manifest| manifest.keys_expire_at());
        }
        self.progress.findings.add_key_expiry(keys_expire_at.filter(|_| decides));
        Ok(())
    }

    /// Adds the known parts of a manifest that was received completely but whose parts this visit has not requested, for example because
    /// their host asked for a delay. They are read from their stored copies, so that the manifest keeps what they declare.
    fn add_unrequested_parts(&mut self, index: usize) {
        let fetched = &self.progress.findings.fetched;
        let Some(whole) = fetched.get(index) else { return };
        let Some(manifest) = &whole.manifest else { return };
        let is_requested = |url: &ManifestUrl| fetched.iter().any(|other| other.url == *url);
        let parts = links::of_manifest(manifest).tasks.into_iter();
        let parts = parts.filter(|task| task.role == Role::Part && !is_requested(&task.url));
        let unrequested = parts.filter_map(|task| {
            let known = known(self.site, &task.url)?;
            let is_withdrawn = known.outcome.is_absent()
                || matches!(known.outcome, FetchOutcome::RobotsDenied | FetchOutcome::Blocked);
            let has_copy = known.content_hash.is_some() && !is_withdrawn;
            has_copy.then(|| Task {
                discovery: known.discovery,
                linked_from: known.linked_from.clone().map(Box::new),
                named_by: whole.named_by.of_links(),
                ..task
            })
        });
        let unrequested: Vec<Task> = unrequested.collect();
        for task in unrequested {
            let reason = Some("this visit did not request it; its stored copy was read".to_owned());
            let part = Fetched::unanswered(&task, FetchOutcome::NotReached, reason, clock::now());
            self.progress.findings.record(None, part);
        }
    }

    async fn read_with_parts(
        &mut self,
        index: usize,
        url: &ManifestUrl,
        part_indexes: &[usize],
    ) -> Result<(), Interrupt> {
        let Some(bytes) = self.bytes_of(index).await? else { return Ok(()) };
        let mut parts = Vec::new();
        for &part_index in part_indexes {
            let Some(part) = self.progress.findings.fetched.get(part_index) else { continue };
            let part_url = part.url.clone();
            let is_withdrawn = part.outcome.is_absent() || self.is_denied(part);
            let part_bytes = if is_withdrawn { None } else { self.bytes_of(part_index).await? };
            let was_received =
                || known(self.site, &part_url).is_some_and(|known| known.content_hash.is_some());
            if part_bytes.is_none() && !is_withdrawn && was_received() && self.keeps_reading(url).await? {
                self.progress.findings.keep_reading(index, &part_url);
                return Ok(());
            }
            // if there are no bytes, the reader reports that the document could not be fetched
            parts.push((part_url, part_bytes.unwrap_or_default()));
        }
        let (served, final_url) = self.served_of(index, url).await?;
        let at = self.progress.findings.fetched.get(index).map(|whole| whole.at);
        // an unchanged document was confirmed by this visit, so its keys are checked at the time of this visit
        let served = Served { at: at.map(|at| at.to_rfc3339_opts(SecondsFormat::Secs, true)), ..served };
        let Some(whole) = self.progress.findings.fetched.get(index) else { return Ok(()) };
        let document = Arc::new(OwnedDocument {
            bytes,
            url: url.clone(),
            final_url,
            discovery: whole.discovery,
            served: Some(served),
            linked: parts,
            force: None,
        });
        self.requester.memory.begin_document(whole.is_link());
        let reading = Box::pin(self.read_within_memory(&document)).await?;
        self.apply_reading(index, document, reading);
        Ok(())
    }

    /// Records the result of reading a document. If an earlier version of the reader read an unchanged document and this one refuses it,
    /// the manifest is kept as it is stored.
    fn apply_reading(
        &mut self,
        index: usize,
        document: Arc<OwnedDocument>,
        reading: Result<Reading, Judged>,
    ) {
        let Findings { fetched, sources, .. } = &mut self.progress.findings;
        let Some(whole) = fetched.get_mut(index) else { return };
        let is_kept = whole.outcome != FetchOutcome::Found && is_outdated(self.site, &document.url);
        match reading {
            Err(_) | Ok(Reading::Quarantined(_)) if is_kept => {
                (whole.manifest, whole.body, whole.hash) = (None, None, None);
                self.requester.memory.drop_document();
            }
            Err(refused) => {
                whole.reject(refused.outcome, refused.reason.unwrap_or_default());
                sources.add_unfollowed(&document.url);
                self.requester.memory.drop_document();
            }
            Ok(Reading::Quarantined(reason)) => whole.reject(FetchOutcome::Quarantined, reason),
            Ok(Reading::Read { manifest, .. }) => {
                if whole.manifest.is_none() && !judge::is_manifest(&document.bytes, &manifest) {
                    if whole.outcome == FetchOutcome::Found {
                        // a link that names the part as a manifest does not make it a manifest
                        whole.role = Role::Part;
                    } else {
                        // this version of the reader does not recognise it as a manifest; the next response decides
                        sources.add_unfollowed(&document.url);
                        self.requester.memory.drop_document();
                    }
                    return;
                }
                if let Some(reason) = judge::denial_of_document(&manifest) {
                    whole.reject(FetchOutcome::RobotsDenied, reason.to_owned());
                    self.requester.memory.drop_document();
                    return;
                }
                whole.hash = Some(manifest.content_hash.clone());
                whole.manifest = Some(manifest);
                whole.body = Some(Document(
                    Arc::try_unwrap(document).map_or_else(|shared| shared.bytes.clone(), |owned| owned.bytes),
                ));
            }
        }
    }

    /// Whether a manifest is kept as it was last read while one of its parts is missing. It is if the manifest is in the index and none of
    /// its keys has expired.
    async fn keeps_reading(&self, url: &ManifestUrl) -> Result<bool, StoreError> {
        if known(self.site, url).is_none_or(|known| known.manifest_id.is_none()) {
            return Ok(false);
        }
        let stored = self.stored_manifest(url).await?;
        let keys_expire_at = stored.as_ref().and_then(|stored| stored.manifest.keys_expire_at());
        Ok(stored.is_some() && keys_expire_at.is_none_or(|end| clock::now() <= end))
    }

    /// Documents that complete a manifest: those that were requested as its parts, and parts that were requested for another reason, for
    /// example because a page links to the same description.
    async fn parts_of(&self, index: usize, url: &ManifestUrl) -> Result<Vec<usize>, StoreError> {
        let named = self.named_parts(index, url).await?;
        let is_part = |part: &Fetched| {
            let was_requested_as_part = part.role == Role::Part && part.linked_from.as_deref() == Some(url);
            was_requested_as_part || named.contains(&part.url)
        };
        let fetched = self.progress.findings.fetched.iter().enumerate();
        Ok(fetched.filter(|(_, part)| is_part(part)).map(|(index, _)| index).collect())
    }

    /// The parts that a manifest names. An unchanged manifest is read from the store only if another document changed.
    async fn named_parts(&self, index: usize, url: &ManifestUrl) -> Result<Vec<ManifestUrl>, StoreError> {
        if self.progress.findings.fetched.get(index).is_some_and(|whole| whole.manifest.is_some()) {
            return self.all_named_parts(index, url).await;
        }
        // a part that the manifest no longer names is requested separately
        let is_changed = |other: &Fetched| {
            let is_linked = other.linked_from.as_deref() == Some(url);
            other.outcome == FetchOutcome::Found || (is_linked && other.outcome.is_absent())
        };
        let is_other_change =
            |other: &Fetched| other.url != *url && other.role == Role::Manifest && is_changed(other);
        if !self.progress.findings.fetched.iter().any(is_other_change) {
            return Ok(Vec::new());
        }
        self.all_named_parts(index, url).await
    }

    /// The parts that a manifest names, as it was read in this visit or as it is stored.
    pub(super) async fn all_named_parts(
        &self,
        index: usize,
        url: &ManifestUrl,
    ) -> Result<Vec<ManifestUrl>, StoreError> {
        let named = |manifest: &Manifest| {
            let tasks = links::of_manifest(manifest).tasks.into_iter();
            tasks.filter(|task| task.role == Role::Part).map(|task| task.url).collect()
        };
        let read = self.progress.findings.fetched.get(index).and_then(|whole| whole.manifest.as_ref());
        match read {
            Some(manifest) => Ok(named(manifest)),
            None => {
                Ok(self.stored_manifest(url).await?.map(|stored| named(&stored.manifest)).unwrap_or_default())
            }
        }
    }

    /// Whether a manifest has to be read again because of a part. A part that was received and has no copy in the store may differ from the
    /// part with which the manifest was last read.
    async fn has_changed(&self, part: usize) -> Result<bool, StoreError> {
        let Some(part) = self.progress.findings.fetched.get(part) else { return Ok(false) };
        let resource = known(self.site, &part.url);
        let known = resource.and_then(|known| known.content_hash.as_ref());
        let is_back = resource.is_some_and(|known| !known.outcome.is_present());
        if part.outcome == FetchOutcome::Found {
            let is_new = is_back || part.hash.as_ref() != known;
            return Ok(is_new || self.stored_bytes(known).await?.is_none());
        }
        Ok(known.is_some() && (self.is_denied(part) || self.is_gone(part)))
    }

    /// Whether a part is missing for the second time in a row. Its keys then no longer verify signatures.
    fn is_gone(&self, part: &Fetched) -> bool {
        let was_missed = || known(self.site, &part.url).is_some_and(|known| known.misses_in_row > 0);
        part.outcome.is_absent() && was_missed()
    }

    /// Whether a part must not be used any more, for the same reasons for which a manifest is removed from the index: robots.txt or the
    /// response denies its use, or its server denied access twice in a row.
    fn is_denied(&self, part: &Fetched) -> bool {
        let was_missed = || known(self.site, &part.url).is_some_and(|known| known.misses_in_row > 0);
        part.outcome == FetchOutcome::RobotsDenied || (part.outcome == FetchOutcome::Blocked && was_missed())
    }

    /// The bytes of a fetched document, or of a copy that is still valid. `None` if the document is gone.
    async fn bytes_of(&self, index: usize) -> Result<Option<Vec<u8>>, StoreError> {
        let Some(fetched) = self.progress.findings.fetched.get(index) else { return Ok(None) };
        if let Some(body) = &fetched.body {
            return Ok(Some(body.0.clone()));
        }
        if fetched.outcome.is_absent() {
            return Ok(None);
        }
        self.stored_bytes(known(self.site, &fetched.url).and_then(|known| known.content_hash.as_ref())).await
    }

    async fn stored_bytes(&self, hash: Option<&ContentHash>) -> Result<Option<Vec<u8>>, StoreError> {
        let Some(hash) = hash else { return Ok(None) };
        match self.stored_copy(hash).await? {
            StoredCopy::Whole(bytes) => Ok(Some(bytes)),
            StoredCopy::Missing | StoredCopy::Damaged => Ok(None),
        }
    }

    async fn stored_copy(&self, hash: &ContentHash) -> Result<StoredCopy<Vec<u8>>, StoreError> {
        match retry_while_unavailable("read document", || self.tools.store.document_find(hash)).await {
            Ok(Some(bytes)) => Ok(StoredCopy::Whole(bytes)),
            Ok(None) => Ok(StoredCopy::Missing),
            Err(error @ StoreError::BadRow { .. }) => {
                tracing::error!(%error, "a stored document cannot be used");
                Ok(StoredCopy::Damaged)
            }
            Err(error) => Err(error),
        }
    }

    /// How a document was served, and the target of its redirects. What the visit has not received or requested is taken from the stored
    /// manifest.
    async fn served_of(
        &self,
        index: usize,
        url: &ManifestUrl,
    ) -> Result<(Served, Option<ManifestUrl>), StoreError> {
        let fetched = self.progress.findings.fetched.get(index);
        let final_url = fetched.and_then(|fetched| fetched.final_url.as_deref().cloned());
        if let Some(served) = fetched.and_then(|fetched| fetched.served.as_deref().cloned()) {
            return Ok((served, final_url));
        }
        let is_requested = fetched.is_some_and(|fetched| fetched.outcome != FetchOutcome::Fresh);
        Ok(match self.stored_manifest(url).await? {
            Some(StoredManifest { manifest, .. }) if is_requested => (manifest.served, final_url),
            Some(StoredManifest { manifest, .. }) => (manifest.served, manifest.final_url),
            None => (Served::default(), final_url),
        })
    }

    pub(super) async fn stored_manifest(
        &self,
        url: &ManifestUrl,
    ) -> Result<Option<StoredManifest>, StoreError> {
        let id = ManifestId::of(url);
        retry_while_unavailable("read manifest", || self.tools.store.manifest_find(&id)).await
    }
}

/// Requests a known part as a part, even if a link names it as a manifest.
fn keep_as_part(task: &mut Task, known: &ResourceState) {
    task.role = Role::Part;
    task.discovery = known.discovery;
    task.linked_from = known.linked_from.clone().map(Box::new);
}

#[cfg(test)]
mod tests {
    use policy::BodyKind;

    use super::super::context::{Scope, Stop};
    use super::super::requester::tests::fixture;
    use super::*;

    #[tokio::test]
    async fn a_link_to_a_part_makes_it_a_manifest_only_if_it_is_one() {
        const AWP: &str = r#"{"awp_version":"0.1","domain":"a.example","intent":"Sell books","actions":[
            {"id":"buy_book","description":"Buy a book","method":"POST","endpoint":"/api/books"}]}"#;
        let fixture = fixture(testweb::Host::new("a.example")).await;
        let stop = Stop::default();
        let session = fixture.tools.egress.session(fixture.leased.token.site.clone());
        let mut visit = Visit::new(&fixture.tools, &stop, &fixture.leased, Scope::Site, session);
        let url = |path: &str| ManifestUrl::parse(&format!("https://a.example{path}")).unwrap();
        for (path, body) in [("/jwks.json", r#"{"keys":[]}"#), ("/agent.json", AWP)] {
            let part = Task {
                role: Role::Part,
                named_by: NamedBy::Document,
                linked_from: Some(Box::new(url("/whole.json"))),
                ..Task::new(url(path), BodyKind::Manifest, Discovery::Pointer)
            };
            let received = Fetched {
                hash: Some(ContentHash::of(body.as_bytes())),
                body: Some(Document(body.as_bytes().to_vec())),
                ..Fetched::unanswered(&part, FetchOutcome::Found, None, clock::now())
            };
            visit.progress.findings.record(None, received);
            let link =
                Task { role: Role::Manifest, linked_from: Some(Box::new(url("/agents.json"))), ..part };
            assert!(
                !visit.progress.findings.treat_part_as_manifest(&link),
                "the part was received in this visit"
            );
        }
        assert!(visit.read_together().await.is_ok());
        let read = visit.progress.findings.fetched.iter();
        let read: Vec<_> = read.map(|fetched| (fetched.role, fetched.manifest.is_some())).collect();
        assert_eq!(read, [(Role::Part, false), (Role::Manifest, true)]);
    }
}
