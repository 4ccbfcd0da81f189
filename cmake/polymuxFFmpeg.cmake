# polymux_find_ffmpeg(): finds FFmpeg's five libraries through pkg-config, defines polymux::ffmpeg and sets
# POLYMUX_FFMPEG_FOUND. If POLYMUX_PRIVATE_DEPS is set, its static libraries are linked into the target, and the system's
# are ignored. Also installed, for projects that link polymux's static libraries.
function(polymux_find_ffmpeg)
    if(TARGET polymux::ffmpeg)
        return()
    endif()
    find_package(PkgConfig QUIET)
    if(NOT PKG_CONFIG_FOUND)
        return()
    endif()
    set(libraries LDFLAGS)
    set(folders "$ENV{PKG_CONFIG_LIBDIR}")
    if(POLYMUX_PRIVATE_DEPS)
        set(ENV{PKG_CONFIG_LIBDIR} "${POLYMUX_PRIVATE_DEPS}/lib/pkgconfig")
        set(libraries STATIC_LDFLAGS)
    endif()
    pkg_check_modules(POLYMUX_FFMPEG QUIET libavformat>=59 libavcodec>=59 libswresample>=4 libswscale>=6 libavutil>=57)
    set(ENV{PKG_CONFIG_LIBDIR} "${folders}")
    if(NOT POLYMUX_FFMPEG_FOUND)
        return()
    endif()
    add_library(polymux::ffmpeg INTERFACE IMPORTED GLOBAL)
    target_include_directories(polymux::ffmpeg SYSTEM INTERFACE ${POLYMUX_FFMPEG_INCLUDE_DIRS})
    target_link_libraries(polymux::ffmpeg INTERFACE ${POLYMUX_FFMPEG_${libraries}})
    if(POLYMUX_PRIVATE_DEPS)
        # Static FFmpeg has PC-relative references to its assembly tables.
        target_link_options(polymux::ffmpeg INTERFACE -Wl,-Bsymbolic)
    endif()
endfunction()

set(POLYMUX_FFMPEG_MISSING
    "FFmpeg: not found. Install libavformat-dev libavcodec-dev libswresample-dev libswscale-dev libavutil-dev (Debian, Ubuntu), version 5 or newer, and pkg-config")
