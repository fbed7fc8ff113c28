// Loading in two steps: requests are checked and given memory on the calling thread, then one team
// pass reads and packs. Errors inside the team are kept and thrown by the caller.
#include "runtime/weights.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <new>
#include <numeric>

#include "ops/pack.h"
#include "runtime/side_data.h"

namespace lockstep {
namespace {

constexpr std::size_t kPage = 4096;
// Network file systems want large reads; what is read should still be in the second-level cache
// when it is packed (1.1 B Q4_0 from the page cache: 4 MiB takes 1.19 times as long).
constexpr std::size_t kReadBytes = std::size_t{1} << 20;

}  // namespace

// Counts bytes for all workers; the caller's callback runs in worker 0 only. Keeps the first error.
class WeightLoader::Progress {
 public:
  Progress(const ModelOptions& options, std::uint64_t total) : options_(options), total_(total) {}

  void add(std::uint64_t bytes) { done_.fetch_add(bytes, std::memory_order_relaxed); }
  void tell(const ops::Lane& lane) const {
    if (lane.worker == 0 && options_.progress) {
      options_.progress(options_.progress_context, done_.load(std::memory_order_relaxed), total_);
    }
  }
  bool failed() const noexcept { return failed_.load(std::memory_order_relaxed); }
  void fail(std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
    failed_.store(true, std::memory_order_relaxed);
  }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  const ModelOptions& options_;
  std::uint64_t total_;
  std::atomic<std::uint64_t> done_{0};
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  std::exception_ptr error_;
};

WeightLoader::WeightLoader(const GgufFile& file, Executor& executor, const PagePolicy& pages,
                           quant::Isa isa, Weights& into)
    : file_(file), executor_(executor), pages_(pages), isa_(isa), weights_(into) {}

const GgufTensor& WeightLoader::require(const std::string& name, std::size_t rows,
                                        std::size_t columns) {
  const GgufTensor* tensor = file_.find_tensor(name);
  if (!tensor) file_.refuse("the tensor \"" + name + "\" is missing");
  used_.insert(name);
  const std::vector<std::uint64_t> wanted =
      rows ? std::vector<std::uint64_t>{columns, rows} : std::vector<std::uint64_t>{columns};
  std::vector<std::uint64_t> actual = tensor->dims;
  while (actual.size() > wanted.size() && actual.back() == 1) actual.pop_back();
  if (actual != wanted) {
    file_.refuse("tensor \"" + name + "\" has shape " + shape_text(tensor->dims) + ", expected " +
                 shape_text(wanted) + " from the metadata");
  }
  if (!tensor->format->can_decode() || tensor->format->format == quant::Format::q8_k) {
    file_.refuse("tensor \"" + name + "\" has format " + std::string(tensor->format->name) +
                 ", which this version cannot compute with");
  }
  return *tensor;
}

// The same tensor may be asked for as a table and as a matrix; its few bytes are then read twice.
const std::byte* WeightLoader::side(const GgufTensor& tensor) {
  if (tensor.format->side == nullptr) return nullptr;
  used_.insert(quant::side_tensor_name(tensor.name));
  return weights_.sides.emplace_back(read_side_data(file_, tensor)).data();
}

const ops::ShardedMatrix& WeightLoader::matrix(const std::string& name, std::size_t rows,
                                               std::size_t columns, std::size_t align_rows) {
  const GgufTensor& tensor = require(name, rows, columns);
  const quant::MatmulKernel* kernel = ops::find_kernel(tensor.format->format, isa_);
  if (!kernel) {
    file_.refuse("tensor \"" + name + "\" has format " + std::string(tensor.format->name) +
                 ", which has no matrix product");
  }
  ops::ShardedMatrix& matrix = weights_.matrices.emplace_back();
  matrix.name = name;
  matrix.rows = rows;
  matrix.columns = columns;
  matrix.align = std::lcm<std::size_t>(align_rows, kernel->panel_rows);
  matrix.kernel = kernel;
  matrix.side = side(tensor);
  matrices_.push_back({&tensor, &matrix});
  return matrix;
}

const std::vector<float>& WeightLoader::vector(const std::string& name, std::size_t n) {
  const GgufTensor& tensor = require(name, 0, n);
  if (!tensor.format->decode) {
    file_.refuse("tensor \"" + name + "\" has format " + std::string(tensor.format->name) +
                 ", which is for matrices only");
  }
  std::vector<std::byte> bytes(tensor.bytes);
  file_.read(tensor, 0, bytes);
  std::vector<float>& values = weights_.vectors.emplace_back(n);
  tensor.format->decode(bytes.data(), values.data(), n);
  return values;
}

const ops::RowTable& WeightLoader::table(const std::string& name, std::size_t rows,
                                         std::size_t columns) {
  const GgufTensor& tensor = require(name, rows, columns);
  weights_.buffers.emplace_back(tensor.bytes);
  std::byte* data = weights_.buffers.back().data();
  weights_.tables.push_back({tensor.format->format, rows, columns, data, side(tensor)});
  tables_.push_back({&tensor, data});
  weights_.bytes += tensor.bytes;
  return weights_.tables.back();
}

void WeightLoader::refuse_unused() const {
  for (const GgufTensor& tensor : file_.tensors()) {
    if (tensor.elements == 0 || used_.contains(tensor.name)) continue;
    file_.refuse(
        "tensor \"" + tensor.name +
        "\" has no place in this architecture; running without it would give wrong results");
  }
}

// One buffer per worker for all its slices, in every copy: few mappings, so that huge pages fit.
void WeightLoader::allocate() {
  const unsigned workers = executor_.workers();
  const auto padded = [](std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; };
  const auto shard_bytes = [&](const ops::ShardedMatrix& matrix, const ops::Slice& slice) {
    return padded(ops::packed_bytes(*matrix.kernel, slice.size(), matrix.columns));
  };
  std::vector<std::size_t> bytes(workers, 0);
  for (const MatrixRequest& request : matrices_) {
    ops::ShardedMatrix& matrix = *request.matrix;
    weights_.bytes += matrix.bytes() * pages_.copies();
    for (unsigned worker = 0; worker < workers; ++worker) {
      const ops::Slice slice = ops::split(matrix.rows, matrix.align, {worker, workers, 0, 1});
      matrix.shards.push_back({slice, nullptr});
      bytes[worker] += shard_bytes(matrix, slice);
    }
  }
  for (std::size_t copy = 0; copy < pages_.copies(); ++copy) {
    for (unsigned worker = 0; worker < workers; ++worker) {
      const unsigned node = pages_.copies() > 1 ? pages_.nodes()[copy]
                                                : executor_.placement().workers[worker].os_node;
      weights_.buffers.push_back(pages_.allocate(bytes[worker], node));
      const std::byte* at = weights_.buffers.back().data();
      weights_.parts.push_back({at, bytes[worker], node});
      for (const MatrixRequest& request : matrices_) {
        ops::ShardedMatrix::Shard& shard = request.matrix->shards[worker];
        if (copy == 0) shard.panels = at;
        if (pages_.copies() > 1) shard.copies.push_back(at);
        at += shard_bytes(*request.matrix, shard.rows);
      }
    }
  }
}

void WeightLoader::load_shard(const MatrixRequest& request, const ops::Slice& rows,
                              std::byte* panels, std::vector<std::byte>& staging,
                              const ops::Lane& lane, Progress& progress) const {
  const ops::ShardedMatrix& matrix = *request.matrix;
  const quant::FormatTraits& format = *request.tensor->format;
  const std::size_t row_bytes = quant::bytes_of(format.format, matrix.columns);
  const std::size_t panel_rows = matrix.kernel->panel_rows;
  const std::size_t panels_per_read =
      std::max<std::size_t>(1, kReadBytes / (row_bytes * panel_rows));
  const std::size_t step = panels_per_read * panel_rows;
  for (std::size_t row = rows.begin; row < rows.end && !progress.failed(); row += step) {
    const std::size_t count = std::min(step, rows.end - row);
    staging.resize(std::max(staging.size(), count * row_bytes));
    const std::span<std::byte> bytes(staging.data(), count * row_bytes);
    file_.read(*request.tensor, row * row_bytes, bytes);
    if (format.first_bad_scale) {
      const std::size_t blocks = bytes.size() / format.block_bytes;
      const std::size_t bad = format.first_bad_scale(bytes.data(), blocks);
      if (bad < blocks) {
        const std::size_t blocks_per_row = matrix.columns / format.block_values;
        file_.refuse("tensor \"" + matrix.name + "\": the scale of block " +
                     std::to_string(bad % blocks_per_row) + " in row " +
                     std::to_string(row + bad / blocks_per_row) +
                     " is not a finite number; the file is damaged");
      }
    }
    ops::pack_rows(*matrix.kernel, bytes.data(), {0, count}, matrix.columns,
                   panels + (row - rows.begin) / panel_rows * matrix.panel_bytes());
    progress.add(bytes.size());
    progress.tell(lane);
  }
}

void WeightLoader::load_slices(const ops::Lane& lane, Progress& progress) const {
  std::vector<std::byte> staging;
  // Copies are loaded by the workers of their own node. A team smaller than the planned one still
  // loads everything.
  const std::vector<topology::Worker>& workers = executor_.placement().workers;
  for (std::size_t copy = 0; copy < pages_.copies(); ++copy) {
    std::vector<unsigned> loaders;
    for (unsigned worker = 0; worker < lane.workers; ++worker) {
      if (pages_.copies() == 1 || workers[worker].node == copy) loaders.push_back(worker);
    }
    if (loaders.empty()) loaders.push_back(0);
    const auto mine = std::ranges::find(loaders, lane.worker);
    if (mine == loaders.end()) continue;
    for (const MatrixRequest& request : matrices_) {
      const auto& shards = request.matrix->shards;
      for (auto i = static_cast<std::size_t>(mine - loaders.begin()); i < shards.size();
           i += loaders.size()) {
        const std::byte* const panels = shards[i].panels_for(static_cast<unsigned>(copy));
        load_shard(request, shards[i].rows, const_cast<std::byte*>(panels), staging, lane,
                   progress);
      }
    }
  }
  for (const TableRequest& request : tables_) {
    const ops::Slice slice = ops::split(request.tensor->bytes, kPage, lane);
    for (std::size_t at = slice.begin; at < slice.end && !progress.failed(); at += kReadBytes) {
      const std::size_t count = std::min(kReadBytes, slice.end - at);
      file_.read(*request.tensor, at, {request.data + at, count});
      progress.add(count);
      progress.tell(lane);
    }
  }
  progress.tell(lane);
}

std::uint64_t WeightLoader::bytes_to_read() const {
  std::uint64_t total = 0;
  for (const MatrixRequest& request : matrices_) total += request.tensor->bytes * pages_.copies();
  for (const TableRequest& request : tables_) total += request.tensor->bytes;
  return total;
}

void WeightLoader::map() {
  refuse_unused();
  try {
    allocate();
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::no_resource, file_.path().string() + ": not enough memory for " +
                                            std::to_string(bytes_to_read() >> 20) +
                                            " MiB of weights");
  }
}

void WeightLoader::load(const ModelOptions& options) {
  const std::uint64_t total = bytes_to_read();
  Progress progress(options, total);
  const auto begin = std::chrono::steady_clock::now();
  executor_.team([&](const ops::Lane& lane) noexcept {
    try {
      load_slices(lane, progress);
    } catch (...) {
      progress.fail(std::current_exception());
    }
  });
  progress.rethrow();
  weights_.read_bytes = total;
  weights_.read_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  for (const TableRequest& request : tables_) {
    const quant::FormatTraits& format = *request.tensor->format;
    if (!format.first_bad_scale) continue;
    const std::size_t blocks = request.tensor->bytes / format.block_bytes;
    const std::size_t bad = format.first_bad_scale(request.data, blocks);
    if (bad < blocks) {
      file_.refuse("tensor \"" + request.tensor->name + "\": the scale of block " +
                   std::to_string(bad) + " is not a finite number; the file is damaged");
    }
  }
}

}  // namespace lockstep
