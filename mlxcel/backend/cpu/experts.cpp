#include "mlxcel/backend/cpu/experts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "mlxcel/backend/cpu/cpu_backend.h"
#include "mlxcel/core/error.h"

namespace mlxcel::backend::cpu {

void route_row(
    const float* scores, const RouterSpec& spec, int32_t* ids, float* weights
) {
  float most = *std::max_element(scores, scores + spec.experts);
  float total = 0;
  for (int64_t i = 0; i < spec.experts; ++i) {
    total += std::exp(scores[i] - most);
  }
  // The chosen so far, in order: few, so that inserting is cheap.
  int64_t chosen = 0;
  for (int64_t i = 0; i < spec.experts; ++i) {
    int64_t at = chosen;
    while (at > 0 && scores[i] > scores[ids[at - 1]]) {
      --at;
    }
    if (at == spec.chosen) {
      continue;
    }
    chosen = std::min(chosen + 1, spec.chosen);
    std::copy_backward(ids + at, ids + chosen - 1, ids + chosen);
    ids[at] = static_cast<int32_t>(i);
  }
  float sum = 0;
  for (int64_t k = 0; k < spec.chosen; ++k) {
    weights[k] = std::exp(scores[ids[k]] - most) / total;
    sum += weights[k];
  }
  for (int64_t k = 0; spec.normalize && k < spec.chosen; ++k) {
    weights[k] /= sum;
  }
}

void ExpertPlan::sort(
    const CpuRouting& routing, int64_t experts, int64_t first, int64_t count
) {
  int64_t begin = first * routing.chosen;
  int64_t end = begin + count * routing.chosen;
  starts_.assign(static_cast<size_t>(experts) + 1, 0);
  for (int64_t i = begin; i < end; ++i) {
    ++starts_[static_cast<size_t>(routing.ids[static_cast<size_t>(i)]) + 1];
  }
  parts_.clear();
  largest_ = 0;
  for (int64_t e = 0; e < experts; ++e) {
    auto at = static_cast<size_t>(e);
    int64_t rows = starts_[at + 1];
    starts_[at + 1] += starts_[at];
    if (rows > 0) {
      parts_.push_back({static_cast<int32_t>(e), starts_[at], rows});
      largest_ = std::max(largest_, rows);
    }
  }
  choices_.resize(static_cast<size_t>(end - begin));
  for (int64_t i = begin; i < end; ++i) {
    auto expert = static_cast<size_t>(routing.ids[static_cast<size_t>(i)]);
    choices_[static_cast<size_t>(starts_[expert]++)] = i;
  }
}

std::shared_ptr<const PreparedExperts> CpuBackend::prepare_experts(
    const ExpertGroup& group
) {
  auto experts = std::make_shared<CpuExperts>();
  experts->layer = group.layer;
  experts->experts = group.gate.experts;
  experts->inner = group.gate.rows;
  experts->width = group.gate.cols;
  experts->bank = std::make_shared<ResidentExperts>();
  for (const ExpertStack* stack : {&group.gate, &group.up, &group.down}) {
    if (!supports(Operation::experts, stack->format)) {
      fail(
          ErrorCode::unsupported,
          fmt::format(
              "{}: the cpu backend has no experts of {}",
              stack->path,
              stack->format.describe()
          )
      );
    }
  }
  auto linear = [&](std::vector<LinearWeight> parts) {
    for (const LinearWeight& part : parts) {
      keep(part);
    }
    return make_cpu_linear({std::move(parts)});
  };
  for (int64_t e = 0; e < group.gate.experts; ++e) {
    experts->slots.push_back(
        {linear({group.gate.expert(e), group.up.expert(e)}),
         linear({group.down.expert(e)})}
    );
  }
  return experts;
}

std::shared_ptr<const Routing> CpuBackend::route(
    const Tensor& scores, const RouterSpec& spec
) {
  need_step("route");
  const CpuTensor& in = cpu_tensor(scores);
  if (in.cols != spec.experts || spec.chosen > spec.experts) {
    fail(
        ErrorCode::internal,
        fmt::format(
            "[route] {} scores for {} of {} experts",
            in.cols,
            spec.chosen,
            spec.experts
        )
    );
  }
  auto routing = std::make_shared<CpuRouting>();
  routing->rows = in.rows;
  routing->chosen = spec.chosen;
  auto choices = static_cast<size_t>(in.rows * spec.chosen);
  routing->ids.resize(choices);
  routing->weights.resize(choices);
  for_rows(in.rows, in.cols, [&](int64_t row) {
    route_row(
        in.row(row),
        spec,
        routing->ids.data() + row * spec.chosen,
        routing->weights.data() + row * spec.chosen
    );
  });
  return routing;
}

Tensor CpuBackend::experts(
    const PreparedExperts& group,
    const Routing& routing,
    const Tensor& x,
    Activation activation,
    const Tensor& residual
) {
  need_step("experts");
  const auto& ready = static_cast<const CpuExperts&>(group);
  const auto& chosen = static_cast<const CpuRouting&>(routing);
  const CpuTensor& in = cpu_tensor(x);
  const CpuTensor& rest = cpu_tensor(residual);
  if (in.cols != ready.width || in.rows != chosen.rows ||
      rest.rows != in.rows || rest.cols != in.cols) {
    fail(
        ErrorCode::internal,
        fmt::format(
            "[experts] layer {}: an input of {} x {}, expected {} x {}",
            ready.layer,
            in.rows,
            in.cols,
            chosen.rows,
            ready.width
        )
    );
  }
  Tensor y = make_like(x, ready.width);
  for (const RoleRun& run : plan_.runs(in.selected)) {
    run_experts(ready, chosen, run, in, activation, rest, cpu_tensor(y));
  }
  return y;
}

// Expert by expert, all of its rows at once. A row's sum is taken in the order
// of its weights, whoever else is there.
void CpuBackend::run_experts(
    const CpuExperts& group,
    const CpuRouting& routing,
    const RoleRun& run,
    const CpuTensor& x,
    Activation activation,
    const CpuTensor& residual,
    CpuTensor& y
) {
  expert_plan_.sort(routing, group.experts, run.first, run.count);
  int64_t width = group.width;
  int64_t base = run.first * routing.chosen;
  Tensor outputs = arena_.make(run.count * routing.chosen, width);
  Tensor inputs = arena_.make(expert_plan_.largest(), width);
  Tensor inner = arena_.make(expert_plan_.largest(), group.inner);
  Tensor results = arena_.make(expert_plan_.largest(), width);
  std::vector<int32_t> ids;
  for (const ExpertPlan::Part& part : expert_plan_.parts()) {
    ids.push_back(part.expert);
  }
  std::vector<int32_t> slots = group.bank->acquire(group.layer, ids);
  MatmulEpilogue gate;
  gate.gate = activation;
  auto multiply = [&](const CpuLinear& matrix,
                      const float* from,
                      int64_t ldx,
                      int64_t count,
                      const MatmulEpilogue& epilogue,
                      float* to,
                      int64_t ldy) {
    cpu::linear(
        matrix,
        from,
        ldx,
        count,
        family_of(run.role),
        options_.activations,
        options_.isa,
        epilogue,
        to,
        ldy,
        scratch_,
        pool_
    );
  };
  for (size_t i = 0; i < slots.size(); ++i) {
    const ExpertPlan::Part& part = expert_plan_.parts()[i];
    const auto& expert = group.slots[static_cast<size_t>(slots[i])];
    const int64_t* choices = expert_plan_.choices().data() + part.begin;
    const float* from = x.row(choices[0] / routing.chosen);
    float* to = cpu_tensor(outputs).row(choices[0] - base);
    if (part.count > 1) {
      from = cpu_tensor(inputs).data;
      to = cpu_tensor(results).data;
      for_rows(part.count, width, [&](int64_t j) {
        std::memcpy(
            cpu_tensor(inputs).row(j),
            x.row(choices[j] / routing.chosen),
            static_cast<size_t>(width) * sizeof(float)
        );
      });
    }
    float* middle = cpu_tensor(inner).data;
    multiply(
        *expert.gate_up, from, width, part.count, gate, middle, group.inner
    );
    multiply(*expert.down, middle, group.inner, part.count, {}, to, width);
    if (part.count > 1) {
      for_rows(part.count, width, [&](int64_t j) {
        std::memcpy(
            cpu_tensor(outputs).row(choices[j] - base),
            cpu_tensor(results).row(j),
            static_cast<size_t>(width) * sizeof(float)
        );
      });
    }
  }
  for_rows(run.count, width * routing.chosen, [&](int64_t r) {
    const float* from = residual.row(run.first + r);
    float* sum = y.row(run.first + r);
    std::memcpy(sum, from, static_cast<size_t>(width) * sizeof(float));
    const float* weights =
        routing.weights.data() + (run.first + r) * routing.chosen;
    for (int64_t k = 0; k < routing.chosen; ++k) {
      const float* part = cpu_tensor(outputs).row(r * routing.chosen + k);
      for (int64_t c = 0; c < width; ++c) {
        sum[c] += weights[k] * part[c];
      }
    }
  });
}

}  // namespace mlxcel::backend::cpu
