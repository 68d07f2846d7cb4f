ember_bench(codec_bench FILES codec_bench.cc codec_candidates.cc latent_samples.cc
  DEPS ember_runtime ember_random_model ember_temp_folder LIBRARIES PkgConfig::libzstd)
