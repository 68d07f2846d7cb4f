ember_bench(restore_sweep FILES restore_sweep.cc
  DEPS ember_runtime ember_plot ember_temp_folder)
ember_bench(codec_bench FILES codec_bench.cc codec_candidates.cc latent_samples.cc
  DEPS ember_runtime ember_random_model ember_temp_folder LIBRARIES PkgConfig::libzstd)
if(TARGET ember_needle)
  ember_bench(needle FILES needle.cc bench_program.cc heat_map.cc
    DEPS ember_needle ember_plot ember_temp_folder
    LIBRARIES CLI11::CLI11 nlohmann_json::nlohmann_json)
endif()
ember_bench(engine_bench
  FILES engine_bench.cc bench_program.cc engine_figures.cc kernel_peak.cc peaks.cc step_rig.cc
  DEPS ember_runtime ember_random_model ember_allocation_counter ember_temp_folder
  LIBRARIES CLI11::CLI11 nlohmann_json::nlohmann_json)
if(EMBER_TESTS)
  add_test(NAME slow.needle COMMAND needle --lengths 512,2048 --contexts 1
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  add_test(NAME slow.engine_bench
           COMMAND engine_bench --model models/demo --tokens 600 --positions 1024 --tries 1
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(slow.needle slow.engine_bench PROPERTIES LABELS slow TIMEOUT 900)
endif()
