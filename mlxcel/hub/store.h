#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mlxcel/hub/downloader.h"
#include "mlxcel/hub/reference.h"

namespace mlxcel::hub {

/// A model of the store: <root>/OWNER/NAME, or <root>/NAME, which somebody
/// put there.
struct StoreEntry {
  std::string id;     ///< OWNER/NAME, or NAME
  std::string path;   ///< its directory
  uint64_t size = 0;  ///< bytes of its files, those behind links included
  /// When the newest of its files was written, in seconds since 1970.
  std::optional<int64_t> modified;
};

enum class StoreOrder { name, size, modified };

/// `given` (a flag), MLXCEL_MODELS_DIR, or models in MLXCEL_CACHE_DIR or
/// ~/.cache/mlxcel; blank ones don't count. Nothing if there is no HOME either.
std::optional<std::string> store_root(const std::string& given);
/// store_root(), or Error(usage) that names the flag and the variables.
std::string require_store_root(const std::string& given);
/// What to set where store_root() gives nothing.
std::string store_root_advice();

/// The models in the store, by name: directories with a config.json whose
/// names can be given as OWNER/NAME or NAME. None if the root isn't there.
/// Throws Error(io) naming what can't be read.
std::vector<StoreEntry> list_store(const std::string& root);

/// By name ascending, by size descending, or newest first with unknown last;
/// equals by name.
void sort_entries(std::vector<StoreEntry>& entries, StoreOrder order);

/// Where a repository's files belong, whether they are there or not.
std::string store_directory(
    const std::string& root, const Repository& repository
);

/// The entry of a reference, also one that is downloaded in part: OWNER/NAME,
/// or for a name alone that has no organisation's entry <root>/NAME, if that
/// has a config.json. Nothing if there is none.
std::optional<StoreEntry> find_entry(
    const std::string& root, const Reference& reference
);

/// The revision that note_revision() wrote into an entry; nothing if it wrote
/// none there, as for main. Throws Error naming the file if it holds none.
std::optional<std::string> noted_revision(const std::string& directory);
/// The revision to fetch into a repository's directory: the one asked for, or
/// for none (empty) the noted one or main. Throws Error(unsupported) if the
/// directory holds another, or one that nobody noted: it keeps one.
std::string revision_to_fetch(
    const Repository& repository,
    const std::string& directory,
    const std::string& asked
);
/// Writes down that an entry holds, or is about to hold, a revision other than
/// main, so that it is never filled up from another. Makes the directory.
/// Throws Error(io).
void note_revision(const std::string& directory, const std::string& revision);

/// Downloads into an entry. One that then holds nothing but such a note is
/// removed again, with its owner's folder if that is empty. Throws what the
/// downloader throws.
void download_entry(Downloader& downloader, const DownloadRequest& request);

/// Deletes an entry, and its owner's folder if that is empty then. An entry
/// that is a link loses the link alone; links in it are not followed. Throws
/// Error naming what can't be removed, or an owner's folder that is a link
/// out of the store.
void remove_entry(const std::string& root, const StoreEntry& entry);

}  // namespace mlxcel::hub
