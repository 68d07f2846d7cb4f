ember_bench(codec_bench FILES codec_bench.cc codec_candidates.cc latent_samples.cc
  DEPS ember_runtime ember_random_model ember_temp_folder LIBRARIES PkgConfig::libzstd)
if(TARGET ember_needle)
  ember_bench(needle FILES needle.cc heat_map.cc svg.cc
    DEPS ember_needle ember_temp_folder LIBRARIES CLI11::CLI11 nlohmann_json::nlohmann_json)
endif()
