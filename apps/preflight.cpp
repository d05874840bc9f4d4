#include "apps/preflight.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "mlxcel/core/error.h"
#include "mlxcel/core/log.h"
#include "mlxcel/core/os.h"

namespace mlxcel::apps {

namespace {

void add_line(std::string& text, const char* name, const std::string& value) {
  fmt::format_to(std::back_inserter(text), "{:<13}{}\n", name, value);
}

std::string figure_text(const Figure& figure) {
  if (!figure.bytes) {
    return "unknown: " + figure.note;
  }
  return exact_size(*figure.bytes) +
         (figure.note.empty() ? "" : "; " + figure.note);
}

std::string weights_text(const MemoryEstimate& estimate) {
  std::string text = figure_text(estimate.weights);
  switch (estimate.source) {
    case WeightsSource::safetensors_header:
      return text + "; from the headers of the shards";
    case WeightsSource::config:
      return text + "; worked out from the config, there are no weights";
    case WeightsSource::none:
      break;
  }
  return text;
}

std::string kv_text(const MemoryEstimate& estimate) {
  std::string text = figure_text(estimate.kv);
  if (estimate.kv.bytes && estimate.kv_per_token) {
    text += fmt::format("; {} bytes a token", *estimate.kv_per_token);
  }
  return text;
}

std::string verdict(const MemoryEstimate& estimate, const Budget& budget) {
  auto fits = estimate.fits(budget);
  uint64_t needed = estimate.known() + estimate.headroom();
  if (!fits) {
    return budget.bytes == 0 ? "UNKNOWN whether it fits: the system does not "
                               "tell how much memory there is"
                             : "UNKNOWN whether it fits: not every figure is "
                               "known";
  }
  if (*fits) {
    return fmt::format("FITS, {} to spare", exact_size(budget.bytes - needed));
  }
  return fmt::format(
      "DOES NOT FIT, {} too much", exact_size(needed - budget.bytes)
  );
}

}  // namespace

std::string recommendation_text(
    const std::vector<QuantChoice>& choices,
    const MemoryRequest& request,
    const Budget& budget
) {
  if (choices.empty()) {
    return "what a quantisation would need is unknown: this build can't run "
           "the architecture or the backend does not tell what it allocates\n";
  }
  std::string text = fmt::format(
      "{:<24}{:>12}{:>12}  {} tokens, batch {}, without headroom\n",
      "quantisation",
      "weights",
      "in all",
      request.context,
      request.batch
  );
  for (const QuantChoice& choice : choices) {
    fmt::format_to(
        std::back_inserter(text),
        "{:<24}{:>12}{:>12}  {}\n",
        choice.format,
        format_size(choice.weights),
        format_size(choice.net),
        budget.bytes == 0 ? "unknown whether it fits"
        : choice.fits     ? "fits"
                          : "does not fit"
    );
  }
  const QuantChoice* best = recommended(choices);
  if (best == nullptr) {
    return text + "none is known to fit\n";
  }
  return text + fmt::format(
                    "recommended: {} (mlxcel convert {})\n",
                    best->format,
                    best->convert
                );
}

std::string exact_size(uint64_t bytes) {
  return fmt::format("{} ({} bytes)", format_size(bytes), bytes);
}

std::string memory_text(
    const MemoryEstimate& estimate,
    const MemoryRequest& request,
    const Budget& budget
) {
  std::string text;
  add_line(
      text,
      "context",
      fmt::format("{} tokens, batch {}", request.context, request.batch)
  );
  add_line(text, "weights", weights_text(estimate));
  add_line(text, "KV cache", kv_text(estimate));
  add_line(text, "activations", figure_text(estimate.activations));
  add_line(
      text,
      "allocator",
      fmt::format(
          "{}; factor {:.2f} on weights and KV cache",
          exact_size(estimate.headroom()),
          estimate.factor
      )
  );
  auto total = estimate.total();
  add_line(
      text,
      "total",
      total ? exact_size(*total)
            : "at least " + exact_size(estimate.known() + estimate.headroom())
  );
  add_line(
      text,
      "available",
      budget.bytes == 0 ? "unknown"
                        : exact_size(budget.bytes) + "; " + budget.source
  );
  return text + verdict(estimate, budget) + "\n";
}

void Preflight::add_to(CLI::App& command) {
  command
      .add_flag(
          "--recommend-quant",
          recommend,
          "Print which quantisations of the model would fit"
      )
      ->group("Memory");
  command
      .add_flag(
          "--estimate-memory",
          estimate,
          "Print what the model will need before it is loaded, and compare "
          "after"
      )
      ->group("Memory");
  command
      .add_flag(
          "--force,--no-memory-check",
          force,
          "Load it even if it does not fit into memory"
      )
      ->group("Memory");
}

void Preflight::judge(
    const CheckpointOutline& checkpoint,
    const MemoryEstimate& measured,
    const MemoryRequest& request
) const {
  Budget budget = memory_budget(memory_facts());
  if (recommend) {
    std::string text = recommendation_text(
        quant_choices(checkpoint, request, budget), request, budget
    );
    std::fputs(text.c_str(), stderr);
  }
  bool over = measured.fits(budget) == false;
  if (estimate || over) {
    std::fputs(memory_text(measured, request, budget).c_str(), stderr);
  }
  if (!over) {
    return;
  }
  uint64_t needed = measured.known() + measured.headroom();
  std::string message = fmt::format(
      "[memory] the model needs {}, available are {} ({}): {} too much",
      exact_size(needed),
      exact_size(budget.bytes),
      budget.source,
      exact_size(needed - budget.bytes)
  );
  if (force) {
    log_warning(message + "; loaded all the same (--force)");
    return;
  }
  int64_t fitting = fitting_context(checkpoint, request, budget);
  if (fitting > 0) {
    message += fmt::format(
        ". About {} tokens would fit (-c {}, or -n for a shorter reply)",
        fitting,
        fitting
    );
  }
  fail(
      ErrorCode::out_of_memory,
      message +
          ". --recommend-quant tells what would fit; --force "
          "(--no-memory-check) loads it all the same"
  );
}

std::string compare_with_resident(const MemoryEstimate& estimate) {
  uint64_t resident = os::resident_bytes();
  if (resident == 0) {
    return "memory: the system does not tell what is resident";
  }
  auto net = estimate.net();
  if (!net || *net == 0) {
    return fmt::format(
        "memory: {} resident, the estimate is unknown", exact_size(resident)
    );
  }
  return fmt::format(
      "memory: estimated {} (weights, KV cache, activations), resident {} "
      "after loading: {} {}, ratio {:.2f}; the KV cache grows with the tokens",
      exact_size(*net),
      exact_size(resident),
      format_size(*net > resident ? *net - resident : resident - *net),
      *net > resident ? "under" : "over",
      static_cast<double>(resident) / static_cast<double>(*net)
  );
}

}  // namespace mlxcel::apps
