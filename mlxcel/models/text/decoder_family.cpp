#include "mlxcel/models/text/decoder_family.h"

#include "mlxcel/nn/decoder.h"

namespace mlxcel::models {

namespace {

class DecoderModel : public LanguageModel {
 public:
  explicit DecoderModel(std::unique_ptr<nn::Decoder> decoder)
      : decoder_(std::move(decoder)) {}

  backend::Backend& backend() const override {
    return decoder_->backend();
  }
  backend::StateLayout state_layout() const override {
    return decoder_->state_layout();
  }
  int64_t vocabulary() const override {
    return decoder_->spec().embedding.vocabulary;
  }
  backend::Tensor forward() override {
    return decoder_->forward();
  }

 private:
  std::unique_ptr<nn::Decoder> decoder_;
};

}  // namespace

std::unique_ptr<LanguageModel> build_decoder(
    const nn::DecoderSpec& spec,
    const nn::TensorNames& names,
    const BuildInput& input
) {
  check_tensors(nn::decoder_tensors(spec, names), input.weights);
  return std::make_unique<DecoderModel>(std::make_unique<nn::Decoder>(
      spec, names, input.weights, input.quantization, input.backend
  ));
}

}  // namespace mlxcel::models
