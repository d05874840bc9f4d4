#pragma once

namespace mlxcel {
class ThreadPool;
}

namespace mlxcel::apps {

/// Bytes per second that the pool's threads read from memory together, the
/// best of some passes over a buffer that no cache holds.
double measure_read_bandwidth(ThreadPool& pool);

}  // namespace mlxcel::apps
