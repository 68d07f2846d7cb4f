// Run op: from an operation as data to the function that computes it.
//
// Journey    program -> [run_op] -> the operations' *_cpu.cc
// Not here   waits, which a device resolves before it runs on
#pragma once

#include "kernels/program.h"

namespace ember {

class CpuTeam;

void run_op(const Op& op, CpuTeam& team, MatmulFunction matmul);

}  // namespace ember
