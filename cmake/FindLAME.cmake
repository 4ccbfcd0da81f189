# libmp3lame ships no CMake package and, in most distributions, no pkg-config file.
# Defines LAME::LAME. If POLYMUX_PRIVATE_DEPS is set, only this prefix is searched.
if(POLYMUX_PRIVATE_DEPS)
    set(only_here NO_DEFAULT_PATH)
endif()
find_path(LAME_INCLUDE_DIR lame/lame.h HINTS "${POLYMUX_PRIVATE_DEPS}/include" ${only_here})
find_library(LAME_LIBRARY NAMES mp3lame HINTS "${POLYMUX_PRIVATE_DEPS}/lib" ${only_here})
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LAME REQUIRED_VARS LAME_LIBRARY LAME_INCLUDE_DIR
    REASON_FAILURE_MESSAGE "install libmp3lame-dev (Debian, Ubuntu) or lame-devel (Fedora)")
if(LAME_FOUND AND NOT TARGET LAME::LAME)
    add_library(LAME::LAME UNKNOWN IMPORTED)
    set_target_properties(LAME::LAME PROPERTIES
        IMPORTED_LOCATION "${LAME_LIBRARY}"
        INTERFACE_INCLUDE_DIRECTORIES "${LAME_INCLUDE_DIR}"
        INTERFACE_LINK_LIBRARIES m)
endif()
mark_as_advanced(LAME_INCLUDE_DIR LAME_LIBRARY)
