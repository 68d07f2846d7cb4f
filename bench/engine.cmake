ember_bench(restore_sweep FILES restore_sweep.cc line_plot.cc svg.cc
  DEPS ember_runtime ember_temp_folder)
