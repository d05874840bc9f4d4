#pragma once

#include <functional>
#include <string>

#include "mlxcel/hub/downloader.h"
#include "mlxcel/hub/reference.h"

namespace mlxcel::hub {

/// Where a model was found.
enum class Source { path, local_models, huggingface_cache, store, download };

/// A model that somebody asks for.
struct ResolveRequest {
  std::string reference;  ///< the text of -m
  std::string revision;   ///< empty: main, and whatever the store holds
  std::string store;      ///< the store's root if a flag gives one
  bool offline = false;   ///< besides what offline_environment() says
  /// Hears, in words, what is about to be done that takes long or that the
  /// text did not say: an organisation put before a name, a download.
  std::function<void(const std::string&)> announce;
};

struct Resolution {
  std::string directory;
  Source source = Source::path;
  std::string repository;  ///< OWNER/NAME; empty for a path
};

/// The directory of a model: an existing path (of a file, the directory that
/// it is in); else, for OWNER/NAME, the first of ./models/NAME, the Hugging
/// Face cache's snapshot, the store's entry that is complete
/// (completeness.h), and what the downloader brings into the store. An entry
/// of the store that isn't complete is resumed, then fetched anew once.
///
/// With a revision ./models is passed over, and a store that has another of
/// the repository, or does not know which, makes it an error: it keeps one of
/// each. A path with a revision is an error too.
///
/// Links out of the directory are refused (links.h).
///
/// `downloader` may be null, in a build that has none. Throws Error:
/// what parse_reference() throws, not_found that lists the places if the
/// model is in none of them and may or can not be downloaded, and what the
/// downloader throws.
Resolution resolve(const ResolveRequest& request, Downloader* downloader);

/// Whether MLXCEL_OFFLINE or LLAMA_ARG_OFFLINE is exactly on, enabled, true or
/// 1. Nothing may touch the network then.
bool offline_environment();

}  // namespace mlxcel::hub
