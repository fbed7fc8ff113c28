// See perplexity.h. A step holds either whole chunks or a piece of one, so its scored rows follow
// each other in the order of the file of saved logits.
#include "runtime/evaluate/perplexity.h"

#include <algorithm>
#include <limits>
#include <string>

#include "quant/kernels.h"
#include "runtime/engine.h"
#include "runtime/fingerprint.h"

namespace lockstep::evaluate {

namespace {

class Evaluator {
 public:
  Evaluator(Session& session, const EvaluationText& text, const LogitsReader* base,
            LogitsWriter* save)
      : session_(session),
        text_(text),
        base_(base),
        save_(save),
        header_(text.header(session.model().info().vocabulary)),
        engine_(session.model().engine().impl()) {
    for (unsigned worker = 0; worker < engine_.executor->workers(); ++worker) {
      scorers_.emplace_back(quant::row_kernels(engine_.isa), header_.vocabulary);
    }
  }

  // Evaluates positions [begin, end) of `count` chunks from `chunk` on, and scores them.
  void step(std::size_t chunk, std::size_t count, std::size_t begin, std::size_t end);

  Evaluation result;
  Fingerprint hash;

 private:
  struct Target {
    std::size_t chunk, position;
  };
  TokenId token_at(std::size_t chunk, std::size_t position) const;
  // -ln p of the token that the base kept beside its codes, or NaN.
  double exact_base_nll(const Target& target) const noexcept;
  void score_rows();

  Session& session_;
  const EvaluationText& text_;
  const LogitsReader* base_;
  LogitsWriter* save_;
  LogitsHeader header_;
  Engine::Impl& engine_;
  std::vector<TokenScorer> scorers_;  // one per worker
  std::vector<BatchEntry> batch_;
  std::vector<Target> targets_;
  std::vector<std::uint16_t> packed_;  // rows of the file, of this step
  std::vector<TokenScore> scores_;
};

TokenId Evaluator::token_at(std::size_t chunk, std::size_t position) const {
  const Tokenizer& tokenizer = session_.model().tokenizer();
  if (position == 0 && tokenizer.adds_bos()) return tokenizer.bos();
  return text_.tokens[chunk * text_.context + position];
}

double Evaluator::exact_base_nll(const Target& target) const noexcept {
  if (base_->nll().empty()) return std::numeric_limits<double>::quiet_NaN();
  return base_
      ->nll()[target.chunk * header_.scored_per_chunk() + target.position - text_.context / 2];
}

void Evaluator::step(std::size_t chunk, std::size_t count, std::size_t begin, std::size_t end) {
  batch_.clear();
  targets_.clear();
  for (std::size_t i = 0; i < count; ++i) {
    if (begin == 0) session_.truncate(i, 0);
    for (std::size_t position = begin; position < end; ++position) {
      const bool is_scored = position >= text_.context / 2;
      batch_.push_back({token_at(chunk + i, position), static_cast<std::int32_t>(position),
                        static_cast<std::int32_t>(i), is_scored});
      if (is_scored) targets_.push_back({chunk + i, position});
    }
  }
  session_.evaluate(batch_);
  result.tokens += batch_.size();
  if (!targets_.empty()) score_rows();
}

void Evaluator::score_rows() {
  const std::size_t row_fields = header_.row_fields();
  if (base_ || save_) packed_.resize(targets_.size() * row_fields);
  if (base_) base_->read(targets_[0].chunk, targets_[0].position - text_.context / 2, packed_);
  scores_.resize(targets_.size());
  engine_.executor->team([&](const ops::Lane& lane) noexcept {
    TokenScorer& scorer = scorers_[lane.worker];
    const ops::Slice slice = ops::split(targets_.size(), 1, lane);
    for (std::size_t i = slice.begin; i < slice.end; ++i) {
      const std::span<const float> logits = session_.logits(i);
      const auto next = static_cast<std::size_t>(
          text_.tokens[targets_[i].chunk * text_.context + targets_[i].position + 1]);
      if (!base_ && !save_) {
        scores_[i] = scorer.score(logits, next);
        continue;
      }
      const std::span<std::uint16_t> row(&packed_[i * row_fields], row_fields);
      PackedLogProbs packed = load_row(row, header_.vocabulary);
      if (base_) {
        scores_[i] = scorer.score(logits, next, packed, exact_base_nll(targets_[i]));
      } else {
        scores_[i] = scorer.score_and_pack(logits, next, packed);
        store_row(packed, row);
      }
    }
  });
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    if (!scores_[i].is_finite) {
      throw Error(ErrorCode::bad_model, "the model gave NaN or infinite logits in chunk " +
                                            std::to_string(targets_[i].chunk + 1) + ", position " +
                                            std::to_string(targets_[i].position));
    }
    hash.add(session_.logits(i));
  }
  result.statistics.add(scores_);
  if (save_) save_->append(packed_, scores_);
}

}  // namespace

EvaluationText EvaluationText::cut(std::vector<TokenId> tokens, std::size_t context,
                                   std::size_t max_chunks) {
  EvaluationText text;
  text.context = context;
  text.chunks = tokens.size() / context;
  if (text.chunks < 2) {
    throw Error(ErrorCode::bad_input, "the text has " + std::to_string(tokens.size()) +
                                          " tokens; two chunks of " + std::to_string(context) +
                                          " are the least: give more text or a smaller --ctx");
  }
  if (max_chunks != 0) text.chunks = std::min(text.chunks, max_chunks);
  tokens.resize(text.chunks * context);
  text.tokens = std::move(tokens);
  return text;
}

EvaluationText EvaluationText::of(const LogitsReader& base, std::size_t max_chunks) {
  EvaluationText text;
  text.context = base.header().context;
  text.chunks = base.header().chunks;
  if (max_chunks != 0) text.chunks = std::min(text.chunks, max_chunks);
  text.tokens.assign(
      base.tokens().begin(),
      base.tokens().begin() + static_cast<std::ptrdiff_t>(text.chunks * text.context));
  return text;
}

SessionOptions session_options(const Model& model, std::size_t context, KvType kv_type) {
  const std::size_t row_bytes = model.info().vocabulary * sizeof(float);
  const std::size_t step = std::clamp<std::size_t>(kLogitBytes / row_bytes, 16, kStepTokens);
  SessionOptions options;
  options.context = context;
  options.slots = std::max<std::size_t>(1, step / context);
  options.max_batch = step;
  options.kv_type = kv_type;
  return options;
}

Evaluation evaluate_text(Session& session, const EvaluationText& text, const LogitsReader* base,
                         LogitsWriter* save, const std::atomic<bool>& stop,
                         EvaluationObserver& observer) {
  Evaluator evaluator(session, text, base, save);
  const SessionOptions& options = session.options();
  const std::size_t last = text.context - 1;  // nothing follows the last token: not evaluated
  const std::size_t together = last <= options.max_batch ? options.slots : 1;
  for (std::size_t chunk = 0; chunk < text.chunks; chunk += together) {
    const std::size_t count = std::min(together, text.chunks - chunk);
    for (std::size_t begin = 0; begin < last; begin += options.max_batch) {
      if (stop.load()) throw Error(ErrorCode::interrupted, "stopped by a signal");
      evaluator.step(chunk, count, begin, std::min(begin + options.max_batch, last));
    }
    observer.on_chunks(chunk + count, text.chunks, evaluator.result.statistics);
  }
  evaluator.result.logits_hash = evaluator.hash.value();
  return std::move(evaluator.result);
}

}  // namespace lockstep::evaluate
