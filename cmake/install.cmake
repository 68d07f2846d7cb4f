# libemberkv: the modules up to the store as one archive, with the headers of its public faces, for
# find_package(emberkv). The engine and the tools are not part of it.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(library_modules ember_base ember_prefix_index ember_kernels ember_store)
add_library(ember_library STATIC)
set(library_needs "")
foreach(module IN LISTS library_modules)
  target_sources(ember_library PRIVATE $<TARGET_OBJECTS:${module}>)
  get_target_property(needs ${module} LINK_LIBRARIES)
  list(APPEND library_needs ${needs})
endforeach()
# Ours are inside; what is left is third-party, linked by whoever links the archive.
list(FILTER library_needs EXCLUDE REGEX "^ember_")
list(REMOVE_DUPLICATES library_needs)
target_link_libraries(ember_library PRIVATE ${library_needs})
target_compile_features(ember_library INTERFACE cxx_std_20)
target_include_directories(ember_library INTERFACE
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/emberkv>)
# The program has the name as well.
set_target_properties(ember_library PROPERTIES LINKER_LANGUAGE CXX
  OUTPUT_NAME emberkv EXPORT_NAME emberkv)

set(emberkv_config ${CMAKE_INSTALL_LIBDIR}/cmake/emberkv)
install(TARGETS ember_library EXPORT emberkvTargets COMPONENT emberkv)
install(EXPORT emberkvTargets NAMESPACE emberkv:: DESTINATION ${emberkv_config}
  COMPONENT emberkv)
foreach(folder base prefix_index kernels store)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder}
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/emberkv COMPONENT emberkv FILES_MATCHING
    PATTERN "*.h"
    PATTERN "store/cache" EXCLUDE
    PATTERN "store/codec" EXCLUDE
    PATTERN "store/disk" EXCLUDE
    PATTERN "store/transfer" EXCLUDE
    PATTERN "store/replay" EXCLUDE)
endforeach()
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/emberkvConfig.cmake.in
  ${PROJECT_BINARY_DIR}/emberkvConfig.cmake INSTALL_DESTINATION ${emberkv_config})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/emberkvConfigVersion.cmake
  VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/emberkvConfig.cmake
  ${PROJECT_BINARY_DIR}/emberkvConfigVersion.cmake
  DESTINATION ${emberkv_config} COMPONENT emberkv)
