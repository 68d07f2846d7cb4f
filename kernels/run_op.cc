// Run op: one overload for each operation.
#include "kernels/run_op.h"

#include "base/check.h"
#include "base/clock.h"
#include "kernels/cpu_team.h"

namespace ember {
namespace {

struct Runner {
  CpuTeam& team;
  MatmulFunction matmul;

  void operator()(const GatherRowsParams& p) const { gather_rows_cpu(p, team); }
  void operator()(const RmsNormParams& p) const { rms_norm_cpu(p, team); }
  void operator()(const MatmulParams& p) const { matmul(p, team); }
  void operator()(const RopeParams& p) const { rope_cpu(p, team); }
  void operator()(const LatentPackParams& p) const { latent_pack_cpu(p, team); }
  void operator()(const LatentAttentionParams& p) const { latent_attention_cpu(p, team, matmul); }
  void operator()(const SwigluParams& p) const { swiglu_cpu(p, team); }
  void operator()(const ResidualAddParams& p) const { residual_add_cpu(p, team); }
  void operator()(const ExpertRouteParams& p) const { expert_route_cpu(p, team); }
  void operator()(const ExpertFfnParams& p) const { expert_ffn_cpu(p, team); }
  void operator()(const SampleParams& p) const { sample_cpu(p, team); }
  void operator()(const BlockCopyParams& p) const { block_copy_cpu(p, team); }
  void operator()(const MarkParams& p) const {
    if (team.rank() == 0) *p.at_us = p.clock->now_us();
  }
  void operator()(const WaitParams&) const { EMBER_CHECK(false, "the device waits, not an op"); }
};

}  // namespace

void run_op(const Op& op, CpuTeam& team, MatmulFunction matmul) {
  std::visit(Runner{team, matmul}, op);
}

}  // namespace ember
