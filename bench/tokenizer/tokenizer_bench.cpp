#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "mlxcel/core/file.h"
#include "mlxcel/tokenizer/tokenizer.h"

/// mlxcel_tokenizer_bench MODEL_DIR TEXT_FILE
///
/// Loads, then encodes the text piece by piece and decodes the ids, on one
/// thread. Prints one line of JSON: seconds of each, tokens, bytes.
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Pieces of about 64 KiB that end with a line.
std::vector<std::string> pieces_of(const std::string& text) {
  std::vector<std::string> pieces;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = text.find('\n', std::min(begin + 65536, text.size() - 1));
    end = end == text.npos ? text.size() : end + 1;
    pieces.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return pieces;
}

void run(const std::string& model_dir, const std::string& text_file) {
  std::vector<std::string> pieces =
      pieces_of(mlxcel::read_file(text_file, uint64_t{1} << 30));
  auto start = Clock::now();
  auto tokenizer = mlxcel::Tokenizer::load(model_dir);
  double load = seconds_since(start);
  std::vector<std::vector<int32_t>> ids;
  start = Clock::now();
  for (const std::string& piece : pieces) {
    ids.push_back(tokenizer->encode(piece));
  }
  double encode = seconds_since(start);
  size_t bytes = 0;
  size_t tokens = 0;
  start = Clock::now();
  for (const auto& list : ids) {
    bytes += tokenizer->decode(list, false).size();
    tokens += list.size();
  }
  fmt::print(
      "{{\"load\": {}, \"encode\": {}, \"decode\": {}, \"tokens\": {}, "
      "\"bytes\": {}}}\n",
      load,
      encode,
      seconds_since(start),
      tokens,
      bytes
  );
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "mlxcel_tokenizer_bench MODEL_DIR TEXT_FILE\n");
    return 2;
  }
  try {
    run(argv[1], argv[2]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
