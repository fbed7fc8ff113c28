// The pass over a tensor, and the two things done in it: encoding and copying.
#include "runtime/quantize/file_writer.h"

#include <algorithm>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <vector>

#include "lockstep/error.h"
#include "runtime/engine.h"
#include "runtime/gguf_writer.h"
#include "runtime/models/architecture.h"
#include "runtime/output_file.h"
#include "runtime/printable.h"
#include "runtime/quantize/row_codec.h"
#include "runtime/side_data.h"

namespace lockstep::quantize {

namespace {

// Values that a worker takes at a time: large reads, yet all three forms stay in its cache, and
// enough portions for an even division of small matrices.
constexpr std::size_t kPortion = std::size_t{1} << 17;

constexpr std::uint32_t kQuantizationVersion = 2;

// Rows [first, first + count) of one tensor, decoded.
struct Rows {
  std::uint64_t first = 0;
  std::size_t count = 0;
  std::span<const float> values;
};

// One worker's memory, kept from tensor to tensor.
struct Staging {
  std::vector<std::byte> source;
  std::vector<std::byte> target;
  std::vector<float> values;
};

// Of the errors of all workers the one that lies first in the tensor: the same message for any
// team.
class FirstError {
 public:
  void keep(std::uint64_t place, std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (place < place_) error_ = std::move(error), place_ = place;
    failed_.store(true, std::memory_order_relaxed);
  }
  bool failed() const noexcept { return failed_.load(std::memory_order_relaxed); }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr error_;
  std::uint64_t place_ = std::numeric_limits<std::uint64_t>::max();
  std::atomic<bool> failed_{false};
};

// What is learned from a whole tensor takes a pass of its own.
std::uint64_t bytes_to_read(const FilePlan& plan) {
  std::uint64_t bytes = 0;
  for (const PlannedTensor& tensor : plan.tensors) {
    const bool learns = !tensor.is_copy() && tensor.target->side != nullptr;
    bytes += tensor.source->bytes * (learns ? 2 : 1);
  }
  return bytes;
}

class FileQuantizer {
 public:
  FileQuantizer(const GgufFile& file, const FilePlan& plan, const Engine& engine,
                const OutputFile& out, const WriteHooks& hooks)
      : file_(file),
        total_(bytes_to_read(plan)),
        executor_(*engine.impl().executor),
        codec_(engine.impl().isa),
        out_(out),
        hooks_(hooks),
        staging_(executor_.workers()) {}

  // Writes a tensor, and returns its side data, empty if its format has none.
  std::vector<std::byte> write(const PlannedTensor& tensor, std::uint64_t offset) {
    side_ = read_side_data(file_, *tensor.source);
    if (tensor.is_copy()) {
      if (tensor.source->bytes != 0) copy(tensor, offset);
      return side_;
    }
    if (tensor.source->bytes == 0) return std::vector<std::byte>(tensor.target->side_bytes());
    return encode(tensor, offset);
  }

 private:
  // Calls work(begin, end, staging) for portions of [0, total) that together are all of it, `step`
  // at a time, from all workers.
  template <class Work>
  void in_portions(const GgufTensor& tensor, std::uint64_t total, std::uint64_t step, Work&& work) {
    std::atomic<std::uint64_t> next{0};
    FirstError error;
    executor_.team([&](const ops::Lane& lane) noexcept {
      while (!error.failed()) {
        const std::uint64_t begin = next.fetch_add(step, std::memory_order_relaxed);
        if (begin >= total) break;
        try {
          if (hooks_.stop != nullptr && hooks_.stop->load(std::memory_order_relaxed)) {
            throw Error(ErrorCode::interrupted, "stopped by a signal; nothing was written");
          }
          work(begin, std::min(begin + step, total), staging_[lane.worker]);
          if (lane.worker == 0 && hooks_.progress) {
            hooks_.progress({tensor.name, done_.load(std::memory_order_relaxed), total_});
          }
        } catch (...) {
          error.keep(begin, std::current_exception());
        }
      }
    });
    error.rethrow();
  }

  // Decodes all rows of a tensor, in parallel, and gives them to work(rows, staging). A format that
  // learns something from the whole tensor before it encodes makes a pass of its own.
  template <class Work>
  void pass(const GgufTensor& tensor, Work&& work) {
    const std::uint64_t columns = tensor.dims[0];
    const std::uint64_t row_bytes = quant::bytes_of(tensor.format->format, columns);
    const std::uint64_t step = std::max<std::uint64_t>(1, kPortion / columns);
    const auto portion = [&](std::uint64_t begin, std::uint64_t end, Staging& staging) {
      const std::size_t n = (end - begin) * columns;
      staging.source.resize((end - begin) * row_bytes);
      staging.values.resize(n);
      file_.read(tensor, begin * row_bytes, staging.source);
      codec_.decode(*tensor.format, side_.data(), staging.source.data(), staging.values.data(), n);
      const std::size_t bad = first_non_finite(staging.values);
      if (bad < n) refuse_value(tensor, begin + bad / columns, bad % columns);
      work(Rows{begin, end - begin, staging.values}, staging);
      done_.fetch_add(staging.source.size(), std::memory_order_relaxed);
    };
    in_portions(tensor, tensor.elements / columns, step, portion);
  }

  static const float* importance_of(const PlannedTensor& planned, std::uint64_t row) {
    if (planned.importance.empty()) return nullptr;
    const GgufTensor& tensor = *planned.source;
    const std::uint64_t rows_per_matrix = tensor.dims.size() > 1 ? tensor.dims[1] : 1;
    return planned.importance.data() + row / rows_per_matrix * tensor.dims[0];
  }

  // Empty if the target has no side data.
  std::vector<std::byte> learn_side(const PlannedTensor& planned) {
    const quant::FormatTraits& target = *planned.target;
    if (target.side == nullptr) return {};
    const GgufTensor& tensor = *planned.source;
    const std::uint64_t columns = tensor.dims[0];
    std::vector<std::unique_ptr<quant::SideLearner>> learners(staging_.size());
    for (auto& learner : learners) {
      learner = quant::make_side_learner(target.format, tensor.elements / columns, columns);
    }
    pass(tensor, [&](const Rows& rows, Staging& staging) {
      quant::SideLearner& learner = *learners[static_cast<std::size_t>(&staging - staging_.data())];
      for (std::size_t i = 0; i < rows.count; ++i) {
        learner.take(rows.first + i, 1, rows.values.data() + i * columns,
                     importance_of(planned, rows.first + i));
      }
    });
    for (std::size_t i = 1; i < learners.size(); ++i) learners[0]->merge(*learners[i]);
    std::vector<std::byte> side(target.side_bytes());
    learners[0]->learn(codec_.isa(), side.data());
    return side;
  }

  std::vector<std::byte> encode(const PlannedTensor& planned, std::uint64_t offset) {
    const GgufTensor& tensor = *planned.source;
    const quant::FormatTraits& target = *planned.target;
    const std::uint64_t columns = tensor.dims[0];
    const std::uint64_t row_bytes = quant::bytes_of(target.format, columns);
    const RowEncoder encoder = codec_.encoder(target);
    std::vector<std::byte> side = learn_side(planned);
    pass(tensor, [&](const Rows& rows, Staging& staging) {
      staging.target.resize(rows.count * row_bytes);
      for (std::size_t i = 0; i < rows.count; ++i) {
        encoder(side.data(), rows.values.data() + i * columns,
                importance_of(planned, rows.first + i), staging.target.data() + i * row_bytes,
                columns);
      }
      check_encoded(planned, rows.first, staging);
      out_.write_at(offset + rows.first * row_bytes, staging.target);
    });
    return side;
  }

  // Finite weights can still be too large for the format.
  void check_encoded(const PlannedTensor& planned, std::uint64_t first_row,
                     Staging& staging) const {
    const quant::FormatTraits& target = *planned.target;
    const std::uint64_t columns = planned.source->dims[0];
    std::size_t bad = staging.values.size();
    if (target.first_bad_scale != nullptr) {
      const std::size_t blocks = staging.target.size() / target.block_bytes;
      bad = target.first_bad_scale(staging.target.data(), blocks) * target.block_values;
    } else if (target.format != quant::Format::f32) {
      codec_.decode(target, nullptr, staging.target.data(), staging.values.data(),
                    staging.values.size());
      bad = first_non_finite(staging.values);
    }
    if (bad >= staging.values.size()) return;
    file_.refuse("tensor \"" + printable(planned.source->name) + "\": row " +
                 std::to_string(first_row + bad / columns) + " has weights too large for " +
                 std::string(target.name) + " (near column " + std::to_string(bad % columns) + ")");
  }

  void copy(const PlannedTensor& planned, std::uint64_t offset) {
    const GgufTensor& tensor = *planned.source;
    const std::uint64_t block = tensor.format->block_bytes;
    const std::uint64_t step = std::max<std::uint64_t>(1, kPortion * sizeof(float) / block) * block;
    in_portions(tensor, tensor.bytes, step,
                [&](std::uint64_t begin, std::uint64_t end, Staging& staging) {
                  staging.source.resize(end - begin);
                  file_.read(tensor, begin, staging.source);
                  check_copied(tensor, begin, staging);
                  out_.write_at(offset + begin, staging.source);
                  done_.fetch_add(staging.source.size(), std::memory_order_relaxed);
                });
  }

  void check_copied(const GgufTensor& tensor, std::uint64_t begin, Staging& staging) const {
    const quant::FormatTraits& format = *tensor.format;
    if (!format.can_decode()) return;
    const std::size_t blocks = staging.source.size() / format.block_bytes;
    const std::size_t n = blocks * format.block_values;
    std::size_t bad = n;
    if (format.first_bad_scale != nullptr) {
      bad = format.first_bad_scale(staging.source.data(), blocks) * format.block_values;
    } else {
      staging.values.resize(n);
      codec_.decode(format, nullptr, staging.source.data(), staging.values.data(), n);
      bad = first_non_finite(staging.values);
    }
    if (bad >= n) return;
    const std::uint64_t place = begin / format.block_bytes * format.block_values + bad;
    refuse_value(tensor, place / tensor.dims[0], place % tensor.dims[0]);
  }

  [[noreturn]] void refuse_value(const GgufTensor& tensor, std::uint64_t row,
                                 std::uint64_t column) const {
    file_.refuse("tensor \"" + printable(tensor.name) + "\": row " + std::to_string(row) +
                 " holds a weight that is not a finite number (column " + std::to_string(column) +
                 "); the file is damaged");
  }

  const GgufFile& file_;
  std::uint64_t total_;
  std::vector<std::byte> side_;  // of the source tensor
  Executor& executor_;
  RowCodec codec_;
  const OutputFile& out_;
  const WriteHooks& hooks_;
  std::vector<Staging> staging_;
  std::atomic<std::uint64_t> done_{0};
};

void require_encoders(const FilePlan& plan, const RowCodec& codec) {
  for (const PlannedTensor& tensor : plan.tensors) {
    const quant::FormatTraits& target = *tensor.target;
    if (tensor.is_copy() || codec.encoder(target)) continue;
    throw Error(ErrorCode::usage, "tensor \"" + printable(tensor.source->name) + "\" would be " +
                                      std::string(target.name) +
                                      ", which this version can read but not write");
  }
}

// The source's metadata with the keys of this run: in their old place where the source has them.
std::vector<MetadataEntry> metadata(const GgufFile& file, const FilePlan& plan,
                                    const Request& request, const ImportanceSource& importance) {
  const auto number = [](std::uint64_t value) {
    return MetadataValue{MetadataType::u32, {}, value};
  };
  const auto text = [](const std::string& value) {
    return MetadataValue{MetadataType::string, {}, value};
  };
  std::vector<MetadataEntry> ours = {{"general.quantization_version", number(kQuantizationVersion)},
                                     {"general.file_type", number(request.mix->file_type)}};
  // A file with a format of ours is marked as ours, and one without is not any more.
  const bool is_ours =
      std::any_of(plan.tensors.begin(), plan.tensors.end(),
                  [](const PlannedTensor& tensor) { return tensor.target->side != nullptr; });
  if (file.find("general.architecture") != nullptr) {
    ours.push_back(
        {"general.architecture", text(is_ours ? kOwnArchitecture : architecture_of(file))});
    if (is_ours) ours.push_back({kRealArchitectureKey, text(architecture_of(file))});
  }
  if (const ImportanceMatrix* matrix = importance.matrix) {
    ours.push_back({"quantize.imatrix.file", text(importance.file)});
    if (!matrix->datasets.empty()) {
      ours.push_back({"quantize.imatrix.dataset", text(matrix->datasets.front())});
    }
    ours.push_back({"quantize.imatrix.entries_count", number(matrix->entries.size())});
    if (matrix->chunk_count > 0) {
      ours.push_back({"quantize.imatrix.chunks_count", number(matrix->chunk_count)});
    }
  }
  std::vector<MetadataEntry> all;
  for (const MetadataEntry& entry : file.metadata()) {
    if (entry.key.starts_with("split.")) continue;
    if (entry.key == kRealArchitectureKey) continue;
    // What the source tells of an older matrix is not true of this file.
    if (importance.matrix != nullptr && entry.key.starts_with("quantize.imatrix.")) continue;
    all.push_back(entry);
  }
  for (MetadataEntry& entry : ours) {
    const auto old = std::find_if(
        all.begin(), all.end(), [&](const MetadataEntry& other) { return other.key == entry.key; });
    if (old != all.end()) {
      *old = std::move(entry);
    } else {
      all.push_back(std::move(entry));
    }
  }
  return all;
}

}  // namespace

void write_file(const GgufFile& file, const FilePlan& plan, const Request& request,
                const ImportanceSource& importance, const Engine& engine,
                const std::filesystem::path& path, const WriteHooks& hooks) {
  require_encoders(plan, RowCodec(engine.impl().isa));
  GgufWriter writer;
  for (MetadataEntry& entry : metadata(file, plan, request, importance)) {
    writer.add(std::move(entry.key), std::move(entry.value));
  }
  for (const PlannedTensor& tensor : plan.tensors) {
    writer.add_tensor(tensor.source->name, tensor.target->format, tensor.source->dims);
    if (tensor.target->side == nullptr) continue;
    writer.add_tensor(quant::side_tensor_name(tensor.source->name), quant::Format::i8,
                      {tensor.target->side_bytes()});
  }
  OutputFile out(path);
  out.reserve(writer.file_bytes());
  out.write_at(0, writer.header());
  const std::vector<std::uint64_t> offsets = writer.tensor_offsets();
  FileQuantizer quantizer(file, plan, engine, out, hooks);
  std::size_t place = 0;
  for (const PlannedTensor& tensor : plan.tensors) {
    const std::vector<std::byte> side = quantizer.write(tensor, offsets[place++]);
    if (!side.empty()) out.write_at(offsets[place++], side);
  }
  out.commit();
}

}  // namespace lockstep::quantize
