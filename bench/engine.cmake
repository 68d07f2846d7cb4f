ember_bench(engine_bench FILES engine_bench.cc peaks.cc
  DEPS ember_runtime ember_allocation_counter ember_temp_folder)
ember_bench(restore_sweep FILES restore_sweep.cc line_plot.cc svg.cc
  DEPS ember_runtime ember_temp_folder)
