// Runs a fuzz target where there is no libFuzzer: the files given (folders: all in them), then a bounded
// number of mutations of them, always the same ones. A crash ends the program by the sanitizer's or the
// target's own abort; what was being tried lies in the file `--artifact`.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<uint8_t>;

constexpr size_t kMaxMutant = 1 << 14;  // bytes

struct Options {
  int mutations = 2000;
  std::string artifact = "crash-input";
  std::vector<Bytes> seeds;
};

Bytes read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

void add_seeds(const fs::path& path, std::vector<Bytes>& seeds) {
  std::vector<fs::path> files;
  if (fs::is_directory(path)) {
    for (const auto& entry : fs::directory_iterator(path)) files.push_back(entry.path());
    std::ranges::sort(files);  // a folder has no order of its own
  } else {
    files.push_back(path);
  }
  for (const fs::path& file : files) seeds.push_back(read_file(file));
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word.starts_with("--mutations=")) {
      options.mutations = std::stoi(word.substr(12));
    } else if (word.starts_with("--artifact=")) {
      options.artifact = word.substr(11);
    } else {
      add_seeds(word, options.seeds);
    }
  }
  return options;
}

// A mutation of `bytes`: what fuzzers do, without their sight of the program.
class Mutator {
 public:
  explicit Mutator(const std::vector<Bytes>& seeds) : seeds_(seeds) {}

  Bytes mutate(Bytes bytes) {
    for (size_t times = 1 + below(4); times > 0; --times) change(bytes);
    if (bytes.size() > kMaxMutant) bytes.resize(kMaxMutant);
    return bytes;
  }

  // Not std::uniform_int_distribution: libraries differ in what it gives.
  size_t below(size_t bound) { return bound == 0 ? 0 : engine_() % bound; }

 private:
  void change(Bytes& bytes) {
    const size_t at = below(bytes.size() + 1);
    const size_t length = below(std::min<size_t>(bytes.size() - at, 64) + 1);
    const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    switch (below(6)) {
      case 0:
        if (at < bytes.size()) bytes[at] ^= static_cast<uint8_t>(1u << below(8));
        return;
      case 1:
        bytes.insert(begin, static_cast<uint8_t>(engine_()));
        return;
      case 2:
        bytes.erase(begin, begin + static_cast<std::ptrdiff_t>(length));
        return;
      case 3: {  // the same again, up to many times: nesting, long tokens
        const Bytes part(begin, begin + static_cast<std::ptrdiff_t>(length));
        Bytes more;
        for (size_t times = 1 + below(below(2) == 0 ? 4 : 600); times > 0; --times) {
          more.insert(more.end(), part.begin(), part.end());
        }
        bytes.insert(begin, more.begin(), more.end());
        return;
      }
      case 4: {  // a part of another seed
        const Bytes& other = seeds_[below(seeds_.size())];
        const size_t from = below(other.size() + 1);
        const size_t count = below(std::min<size_t>(other.size() - from, 128) + 1);
        const auto start = other.begin() + static_cast<std::ptrdiff_t>(from);
        bytes.insert(begin, start, start + static_cast<std::ptrdiff_t>(count));
        return;
      }
      default: {
        static const std::string words[] = {"-9223372036854775808",
                                            "9223372036854775807",
                                            "1e308",
                                            "null",
                                            "[",
                                            "{",
                                            "\"",
                                            "\n",
                                            "\r\n",
                                            "&a ",
                                            "*a",
                                            "<<: ",
                                            "\\u0000",
                                            "true",
                                            "0"};
        const std::string& word = words[below(std::size(words))];
        bytes.insert(begin, word.begin(), word.end());
      }
    }
  }

  std::mt19937_64 engine_{20260101};
  const std::vector<Bytes>& seeds_;
};

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  if (options.seeds.empty()) {
    std::fprintf(stderr, "no seeds: name files or folders of them\n");
    return 2;
  }
  const auto run = [&](const Bytes& input) {
    std::ofstream(options.artifact, std::ios::binary | std::ios::trunc)
        .write(reinterpret_cast<const char*>(input.data()), static_cast<std::streamsize>(input.size()));
    LLVMFuzzerTestOneInput(input.data(), input.size());
  };
  for (const Bytes& seed : options.seeds) run(seed);
  Mutator mutator(options.seeds);
  for (int i = 0; i < options.mutations; ++i) {
    run(mutator.mutate(options.seeds[mutator.below(options.seeds.size())]));
  }
  fs::remove(options.artifact);
  std::printf("%zu seeds, %d mutations\n", options.seeds.size(), options.mutations);
  return 0;
}
