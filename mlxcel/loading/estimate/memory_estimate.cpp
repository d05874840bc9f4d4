#include "mlxcel/loading/estimate/memory_estimate.h"

#include <fmt/format.h>

#include <algorithm>

#include "mlxcel/config/config.h"
#include "mlxcel/core/error.h"
#include "mlxcel/core/log.h"
#include "mlxcel/core/numbers.h"
#include "mlxcel/loading/estimate/hollow_weights.h"
#include "mlxcel/loading/estimate/kv_need.h"
#include "mlxcel/loading/estimate/weight_summary.h"

namespace mlxcel {

namespace {

/// The model on a meter.
class MeteredModel {
 public:
  MeteredModel(
      const CheckpointOutline& checkpoint,
      const MemoryRequest& request,
      std::shared_ptr<backend::Meter> meter
  )
      : request_(request), meter_(std::move(meter)) {
    LogPause pause;  // the load will say it
    WeightMap own;
    if (checkpoint.prepared == nullptr) {
      own = prepared_hollow_weights(
          *checkpoint.listing,
          checkpoint.config,
          {meter_->device(), checkpoint.entry.keeps_bf16, {}}
      );
    }
    model_ = checkpoint.entry.family->build({
        text_config(checkpoint.config),
        checkpoint.prepared == nullptr ? own : *checkpoint.prepared,
        QuantConfig::from_config(checkpoint.config),
        meter_,
    });
    pool_ = meter_->make_pool(model_->state_layout(), 0);
  }

  uint64_t state_bytes() const {
    auto blocks = static_cast<uint64_t>(
        ceil_div(request_.context, backend::kBlockTokens) * request_.batch
    );
    return checked_mul(blocks, pool_->block_bytes()).value_or(UINT64_MAX);
  }
  uint64_t state_per_token() const {
    return pool_->block_bytes() / static_cast<uint64_t>(backend::kBlockTokens);
  }
  std::vector<backend::LayerState> layers() const {
    return model_->state_layout().layers;
  }

  backend::MemoryUse run() {
    int64_t tokens = std::min(request_.chunk, request_.context);
    step({{1, 0, tokens, request_.context - tokens, backend::Role::prompt, {}}}
    );
    std::vector<backend::Segment> segments;
    for (int64_t i = 0; i < request_.batch; ++i) {
      segments.push_back(
          {static_cast<uint64_t>(i + 1),
           i,
           1,
           request_.context - 1,
           backend::Role::generated,
           {}}
      );
    }
    step(std::move(segments));
    return meter_->use();
  }

 private:
  // Logits of the last token of each segment, as the engine asks for them.
  void step(std::vector<backend::Segment> segments) {
    backend::Batch batch;
    batch.segments = std::move(segments);
    for (const backend::Segment& segment : batch.segments) {
      size_t rows = static_cast<size_t>(segment.first + segment.count);
      batch.tokens.resize(rows);
      batch.positions.resize(rows);
      batch.logit_rows.push_back(static_cast<int32_t>(rows - 1));
    }
    meter_->begin(batch, *pool_);
    logits_ = model_->forward();
    meter_->end();
  }

  const MemoryRequest& request_;
  std::shared_ptr<backend::Meter> meter_;
  std::unique_ptr<LanguageModel> model_;
  std::unique_ptr<backend::StatePool> pool_;
  backend::Tensor logits_;  // the engine keeps the last ones
};

std::string built_state_note(const std::vector<backend::LayerState>& layers) {
  size_t kept = 0;
  for (const backend::LayerState& layer : layers) {
    kept += layer.kind == backend::LayerState::Kind::none ? 0 : 1;
  }
  return fmt::format(
      "{} of {} layers keep keys and values of every token, in blocks of {}",
      kept,
      layers.size(),
      backend::kBlockTokens
  );
}

bool is_runnable(const Descriptor& entry) {
  return entry.status == Status::built && entry.family != nullptr &&
         entry.family->build != nullptr;
}

// False if the family can't be bound; `why` tells.
bool estimate_built(
    const CheckpointOutline& checkpoint,
    const MemoryRequest& request,
    MemoryEstimate& estimate,
    std::string& why
) {
  constexpr int64_t kMostTokens = 1 << 22;  // of a step
  int64_t tokens = std::min(request.chunk, request.context);
  if (tokens > kMostTokens) {
    why = fmt::format(
        "a step of {} tokens is more than is worked out (MLXCEL_PREFILL_CHUNK)",
        tokens
    );
    return false;
  }
  std::shared_ptr<backend::Meter> meter = backend::make_meter(request.backend);
  if (meter == nullptr) {
    why = "the reference backend does not tell what it allocates";
    return false;
  }
  try {
    MeteredModel model(checkpoint, request, meter);
    backend::MemoryUse use = model.run();
    estimate.weights = Figure::of(
        use.weights + use.prepared,
        checkpoint.listing->bytes() > use.weights
            ? "without tensors that the model never reads"
            : ""
    );
    estimate.kv =
        Figure::of(model.state_bytes(), built_state_note(model.layers()));
    estimate.kv_per_token = model.state_per_token();
    estimate.activations = Figure::of(
        use.steps,
        fmt::format(
            "steps of {} prompt tokens and of {} generated ones",
            tokens,
            request.batch
        )
    );
    return true;
  } catch (const Error& error) {
    why = error.message();
    return false;
  }
}

void estimate_by_config(
    const CheckpointOutline& checkpoint,
    const MemoryRequest& request,
    MemoryEstimate& estimate
) {
  KvNeed need = kv_need(checkpoint.entry.type, checkpoint.config);
  if (!need.known) {
    estimate.kv = Figure::unknown(need.detail);
    return;
  }
  uint64_t element =
      request.backend.numerics.exact ? sizeof(float) : sizeof(uint16_t);
  auto bytes = checked_mul(
      need.values(request.context),
      element * static_cast<uint64_t>(request.batch)
  );
  estimate.kv = Figure::of(bytes.value_or(UINT64_MAX), need.detail);
  estimate.kv_per_token =
      static_cast<uint64_t>(need.values_per_token()) * sizeof(uint16_t);
}

uint64_t plus(uint64_t a, uint64_t b) {
  return checked_add(a, b).value_or(UINT64_MAX);
}

DType declared_dtype(const Json& config) {
  for (const Json& place : {text_config(config), config}) {
    for (const char* key : {"dtype", "torch_dtype"}) {
      auto field = place.find(key);
      if (field && field->is_string()) {
        const std::string& name = field->as_string();
        return name == "float32"   ? DType::f32
               : name == "float16" ? DType::f16
                                   : DType::bf16;
      }
    }
  }
  return DType::bf16;
}

}  // namespace

uint64_t MemoryEstimate::known() const {
  uint64_t sum = 0;
  for (const Figure* figure : {&weights, &kv, &activations}) {
    sum = plus(sum, figure->bytes.value_or(0));
  }
  return sum;
}

std::optional<uint64_t> MemoryEstimate::net() const {
  bool all = weights.bytes && kv.bytes && activations.bytes;
  return all ? std::optional(known()) : std::nullopt;
}

uint64_t MemoryEstimate::headroom() const {
  auto base =
      static_cast<double>(plus(weights.bytes.value_or(0), kv.bytes.value_or(0))
      );
  double bytes = (factor - 1.0) * base;
  constexpr double kMost = 9e18;
  return static_cast<uint64_t>(std::clamp(bytes, 0.0, kMost));
}

std::optional<uint64_t> MemoryEstimate::total() const {
  auto sum = net();
  return sum ? std::optional(plus(*sum, headroom())) : std::nullopt;
}

std::optional<bool> MemoryEstimate::fits(const Budget& budget) const {
  if (budget.bytes == 0) {
    return std::nullopt;
  }
  // Even what is known may be too much.
  if (plus(known(), headroom()) > budget.bytes) {
    return false;
  }
  return net() ? std::optional(true) : std::nullopt;
}

MemoryEstimate estimate_memory(
    const CheckpointOutline& checkpoint, const MemoryRequest& request
) {
  MemoryEstimate estimate;
  estimate.factor = headroom_factor();
  std::string why = fmt::format(
      "this build recognises {} and can't run it", checkpoint.entry.display_name
  );
  std::optional<TensorListing> imagined;
  CheckpointOutline outline = checkpoint;
  if (outline.listing == nullptr) {
    imagined = listing_from_config(outline.entry, outline.config);
    outline.listing = imagined ? &*imagined : nullptr;
  }
  if (outline.listing == nullptr) {
    estimate.weights = Figure::unknown(checkpoint.missing);
  } else {
    estimate.source =
        imagined ? WeightsSource::config : WeightsSource::safetensors_header;
    estimate.weights = Figure::of(outline.listing->bytes());
    if (!outline.refused.empty()) {
      why = outline.refused;
    } else if (is_runnable(outline.entry) && estimate_built(outline, request, estimate, why)) {
      return estimate;
    }
  }
  estimate_by_config(outline, request, estimate);
  estimate.activations = Figure::unknown(why);
  return estimate;
}

int64_t fitting_context(
    const CheckpointOutline& checkpoint,
    const MemoryRequest& request,
    const Budget& budget
) {
  // Blocks that fit and that don't.
  int64_t fits = 0;
  int64_t fails = ceil_div(request.context, backend::kBlockTokens) + 1;
  while (fails - fits > 1) {
    int64_t middle = fits + (fails - fits) / 2;
    MemoryRequest smaller = request;
    smaller.context = std::min(request.context, middle * backend::kBlockTokens);
    bool good =
        estimate_memory(checkpoint, smaller).fits(budget).value_or(false);
    (good ? fits : fails) = middle;
  }
  return std::min(request.context, fits * backend::kBlockTokens);
}

std::optional<TensorListing> listing_from_config(
    const Descriptor& entry, const Json& config
) {
  if (entry.family == nullptr || entry.family->tensors == nullptr) {
    return std::nullopt;
  }
  try {
    return imagine_tensors(
        entry.family->tensors(text_config(config)),
        QuantConfig::from_config(config),
        declared_dtype(config)
    );
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace mlxcel
