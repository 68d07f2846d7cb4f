// Program: one forward step as data, an ordered list of operations with their shapes and pointers.
//
// Journey    model/forward (builds it) -> [program] -> device (runs it)
// Invariant  plain data: copying or rebuilding one allocates nothing once its list has grown
// Threads    built by the engine thread, read by the device until the step's ticket completes
// Not here   what an operation computes (kernels/<operation>.h)
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "kernels/block_copy.h"
#include "kernels/expert_ffn.h"
#include "kernels/expert_route.h"
#include "kernels/gather_rows.h"
#include "kernels/latent_attention.h"
#include "kernels/latent_pack.h"
#include "kernels/matmul.h"
#include "kernels/residual_add.h"
#include "kernels/rms_norm.h"
#include "kernels/rope.h"
#include "kernels/sample.h"
#include "kernels/swiglu.h"
#include "kernels/ticket.h"

namespace ember {

class Clock;

// The program goes on when this ticket has completed; where it failed, the rest of the program is
// skipped and the program's own ticket fails with that reason. So layer 0 can compute while the
// latents of later layers are still on their way.
struct WaitParams {
  Ticket ticket;
};

// Notes when the program came here: every operation before it has ended.
struct MarkParams {
  const Clock* clock = nullptr;
  int64_t* at_us = nullptr;  // stays alive as the program does
};

using Op = std::variant<GatherRowsParams, RmsNormParams, MatmulParams, RopeParams, LatentPackParams,
                        LatentAttentionParams, SwigluParams, ResidualAddParams, ExpertRouteParams,
                        ExpertFfnParams, SampleParams, BlockCopyParams, WaitParams, MarkParams>;

struct Program {
  std::vector<Op> ops;
  void clear() { ops.clear(); }
  void add(const Op& op) { ops.push_back(op); }
};

}  // namespace ember
