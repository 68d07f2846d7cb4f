ember_bench(scale_bench FILES ${CMAKE_CURRENT_LIST_DIR}/scale_bench.cc DEPS ember_store)
ember_bench(long_prefix_bench FILES ${CMAKE_CURRENT_LIST_DIR}/long_prefix_bench.cc DEPS ember_store)
if(EMBER_TESTS)
  add_test(NAME slow.long_prefix_bench COMMAND long_prefix_bench --tokens 4096)
  set_tests_properties(slow.long_prefix_bench PROPERTIES LABELS slow TIMEOUT 600)
  add_test(NAME slow.scale_bench COMMAND scale_bench --blocks 100000)
  set_tests_properties(slow.scale_bench PROPERTIES LABELS slow TIMEOUT 600)
endif()
ember_bench(replay
  FILES ${CMAKE_CURRENT_LIST_DIR}/replay/main.cc ${CMAKE_CURRENT_LIST_DIR}/replay/replay.cc
  DEPS ember_replay
  LIBRARIES CLI11::CLI11 nlohmann_json::nlohmann_json)
ember_bench(disk_bench
  FILES ${CMAKE_CURRENT_LIST_DIR}/disk_bench.cc ${CMAKE_CURRENT_LIST_DIR}/raw_drive.cc
  DEPS ember_store)
