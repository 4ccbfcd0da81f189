# Finds FFmpeg's five libraries through pkg-config and defines FFmpeg::FFmpeg. If POLYMUX_PRIVATE_DEPS is set, its
# static libraries are linked into the target, and the system's are ignored.
find_package(PkgConfig REQUIRED)
set(modules libavformat>=59 libavcodec>=59 libswresample>=4 libswscale>=6 libavutil>=57)
if(POLYMUX_PRIVATE_DEPS)
    set(ENV{PKG_CONFIG_LIBDIR} "${POLYMUX_PRIVATE_DEPS}/lib/pkgconfig")
    pkg_check_modules(POLYMUX_FFMPEG ${modules})
    set(found_libraries "${POLYMUX_FFMPEG_STATIC_LDFLAGS}")
else()
    pkg_check_modules(POLYMUX_FFMPEG ${modules})
    set(found_libraries "${POLYMUX_FFMPEG_LDFLAGS}")
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(FFmpeg REQUIRED_VARS POLYMUX_FFMPEG_FOUND
    REASON_FAILURE_MESSAGE
    "install libavformat-dev libavcodec-dev libswresample-dev libswscale-dev libavutil-dev (Debian, Ubuntu), version 5 or newer")
if(FFmpeg_FOUND AND NOT TARGET FFmpeg::FFmpeg)
    add_library(FFmpeg::FFmpeg INTERFACE IMPORTED)
    target_include_directories(FFmpeg::FFmpeg SYSTEM INTERFACE ${POLYMUX_FFMPEG_INCLUDE_DIRS})
    target_link_libraries(FFmpeg::FFmpeg INTERFACE ${found_libraries})
    if(POLYMUX_PRIVATE_DEPS)
        # Static FFmpeg has PC-relative references to its assembly tables.
        target_link_options(FFmpeg::FFmpeg INTERFACE -Wl,-Bsymbolic)
    endif()
endif()
