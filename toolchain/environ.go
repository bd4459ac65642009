package toolchain

import (
	"strings"

	"github.com/selfcage/selfcage/internal/hostfs"
)

// listVars hold directories, split at ':' or ';'. A missing one is not an error for anybody: the next one wins.
var listVars = [...]struct{ name, why string }{
	{"LD_LIBRARY_PATH", "the loader looks there first"},
	{"LIBRARY_PATH", "the linker looks there"},
	{"CPATH", "the compiler looks there for headers"},
	{"C_INCLUDE_PATH", "the compiler looks there for headers"},
	{"CPLUS_INCLUDE_PATH", "the compiler looks there for headers"},
	{"PKG_CONFIG_PATH", "pkg-config looks there first"},
	{"PKG_CONFIG_LIBDIR", "pkg-config looks there"},
	{"CMAKE_PREFIX_PATH", "CMake looks there first"},
	{"ACLOCAL_PATH", "aclocal looks there"},
	{"MODULEPATH", "environment modules are found there"},
	{"PERL5LIB", "Perl looks there first"},
	{"RUBYLIB", "Ruby looks there first"},
	{"GEM_PATH", "gems are found there"},
	{"NODE_PATH", "Node looks there"},
	{"CLASSPATH", "Java looks there"},
	{"R_LIBS", "R looks there first"},
	{"R_LIBS_USER", "R looks there"},
	{"R_LIBS_SITE", "R looks there"},
	{"JULIA_DEPOT_PATH", "Julia keeps its packages there"},
	{"GI_TYPELIB_PATH", "typelibs are found there"},
	{"QT_PLUGIN_PATH", "Qt finds its plugins there"},
	{"TERMINFO_DIRS", "terminals are described there"},
	{"OMPI_MCA_mca_component_path", "Open MPI finds its components there"},
	{"OPAL_PREFIX", "Open MPI was moved there"},
	{"GIT_ALTERNATE_OBJECT_DIRECTORIES", "git finds objects there"},
	{"LD_PRELOAD", "it is preloaded into every program"},
	{"LD_AUDIT", "it is loaded into every program"},
	{"VK_ICD_FILENAMES", "Vulkan finds its drivers by it"},
	{"VK_DRIVER_FILES", "Vulkan finds its drivers by it"},
	{"SSL_CERT_DIR", "TLS: certificate authorities"},
	{"PIP_FIND_LINKS", "pip finds packages there"},
}

// rootVars hold one directory or file each.
var rootVars = [...]struct{ name, why string }{
	{"CUDA_HOME", "the CUDA toolkit"},
	{"CUDA_PATH", "the CUDA toolkit"},
	{"CUDA_ROOT", "the CUDA toolkit"},
	{"CUDNN_HOME", "cuDNN"},
	{"ROCM_PATH", "ROCm"},
	{"ROCM_HOME", "ROCm"},
	{"HIP_PATH", "ROCm"},
	{"ONEAPI_ROOT", "oneAPI"},
	{"MKLROOT", "oneAPI's MKL"},
	{"CMPLR_ROOT", "oneAPI's compiler"},
	{"I_MPI_ROOT", "Intel MPI"},
	{"MPI_HOME", "MPI"},
	{"JAVA_HOME", "the JDK"},
	{"JDK_HOME", "the JDK"},
	{"M2_HOME", "Maven"},
	{"MAVEN_HOME", "Maven"},
	{"GRADLE_HOME", "Gradle"},
	{"ANT_HOME", "Ant"},
	{"SCALA_HOME", "Scala"},
	{"DOTNET_ROOT", ".NET"},
	{"ANDROID_HOME", "the Android SDK"},
	{"ANDROID_SDK_ROOT", "the Android SDK"},
	{"SPARK_HOME", "Spark"},
	{"HADOOP_HOME", "Hadoop"},
	{"GEM_HOME", "gems are installed there"},
	{"HOMEBREW_PREFIX", "Homebrew"},
	{"PNPM_HOME", "pnpm's global programs"},
	{"LLVM_CONFIG", "LLVM"},
	{"CMAKE_TOOLCHAIN_FILE", "CMake reads it"},
	{"GCONV_PATH", "iconv finds its modules there"},
	{"LOCPATH", "locales are found there"},
	{"TERMINFO", "terminals are described there"},
	{"FONTCONFIG_FILE", "fontconfig reads it"},
	{"OCL_ICD_VENDORS", "OpenCL finds its drivers there"},
	{"GIT_EXEC_PATH", "git's own programs"},
	{"GIT_TEMPLATE_DIR", "git init copies it"},
	{"GIT_DIR", "the repository"},
	{"GIT_WORK_TREE", "the work tree"},
	{"BASH_ENV", "every bash script reads it first"},
	{"ENV", "sh reads it"},
	{"SSL_CERT_FILE", "TLS: certificate authorities"},
	{"REQUESTS_CA_BUNDLE", "TLS: certificate authorities"},
	{"CURL_CA_BUNDLE", "TLS: certificate authorities"},
	{"NODE_EXTRA_CA_CERTS", "TLS: certificate authorities"},
	{"PIP_CERT", "TLS: certificate authorities"},
	{"GIT_SSL_CAINFO", "TLS: certificate authorities"},
	{"AWS_CA_BUNDLE", "TLS: certificate authorities"},
	{"NIX_SSL_CERT_FILE", "TLS: certificate authorities"},
	{"PYTHONSTARTUP", "python reads it"},
	{"PYTHONHOME", "python's own library"},
	{"NIX_PROFILE", "the Nix profile"},
	{"GUIX_PROFILE", "the Guix profile"},
}

// locations say where a tool or its data is and nothing of what it does. Those of caches are in their table.
var locations = [...]string{
	"CUDA_HOME", "CUDA_PATH", "CUDA_ROOT", "CUDNN_HOME", "ROCM_PATH", "ROCM_HOME", "HIP_PATH", "ONEAPI_ROOT", "MKLROOT", "CMPLR_ROOT",
	"I_MPI_ROOT", "MPI_HOME", "JAVA_HOME", "JDK_HOME", "M2_HOME", "MAVEN_HOME", "GRADLE_HOME", "ANT_HOME", "SCALA_HOME", "DOTNET_ROOT",
	"ANDROID_HOME", "ANDROID_SDK_ROOT", "SPARK_HOME", "HADOOP_HOME", "HOMEBREW_PREFIX", "PNPM_HOME", "NIX_PROFILE", "NIX_PROFILES",
	"GUIX_PROFILE", "RUSTUP_HOME", "CARGO_HOME", "GOPATH", "GOROOT", "GOBIN", "VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_EXE",
	"MAMBA_ROOT_PREFIX", "MAMBA_EXE", "PYENV_ROOT", "JENV_ROOT", "NVM_DIR", "FNM_DIR", "FNM_MULTISHELL_PATH", "VOLTA_HOME",
	"BUN_INSTALL", "ASDF_DIR", "ASDF_DATA_DIR", "MISE_DATA_DIR", "SDKMAN_DIR", "UV_PYTHON_INSTALL_DIR", "UV_TOOL_DIR", "YARN_GLOBAL_FOLDER",
	"MODULESHOME", "LMOD_PKG", "SPACK_ROOT", "HF_HOME", "HUGGINGFACE_HUB_CACHE", "HF_DATASETS_CACHE", "TRANSFORMERS_CACHE",
	"SENTENCE_TRANSFORMERS_HOME", "MODELSCOPE_CACHE", "TORCHINDUCTOR_CACHE_DIR", "NUMBA_CACHE_DIR",
}

// Location says whether the variable called name does no more than tell where a tool or its data is. A value is a path, or
// several with ':' or ' ' between them.
func Location(name string) bool {
	for _, l := range locations {
		if l == name {
			return true
		}
	}
	for i := range caches {
		if caches[i].variable == name && name != "" {
			return true
		}
	}
	return false
}

// programVars hold a command that other programs execute, by path or with arguments.
var programVars = [...]string{"CC", "CXX", "CPP", "FC", "LD", "AR", "AS", "NM", "RANLIB", "STRIP", "PYTHON", "NVCC",
	"CUDACXX", "HIPCC", "RUSTC", "RUSTC_WRAPPER", "SHELL", "MAKE", "NINJA", "PKG_CONFIG", "EDITOR", "VISUAL", "PAGER"}

// pathLists shows what variables name. The caller set them; where they lead nowhere, the programs that read them take
// something else.
func (f *finder) pathLists() {
	for _, v := range listVars {
		value := f.env[v.name]
		if value == "" {
			continue
		}
		for _, p := range strings.FieldsFunc(value, func(r rune) bool { return r == ':' || r == ';' || r == ' ' }) {
			p = strings.TrimSuffix(p, "/*") // of a class path
			r, ok := f.installed(p, v.name+" names it: "+v.why)
			if ok && r.Info.IsDir() && (v.name == "LD_LIBRARY_PATH" || v.name == "LIBRARY_PATH") && !hostfs.Within(r.Path, "/usr") {
				f.scanLinks(r.Path) // views of Spack and of modules consist of links
			}
		}
	}
	for _, v := range rootVars {
		p := f.env[v.name]
		if !strings.HasPrefix(p, "/") {
			continue
		}
		if v.name == "BASH_ENV" || v.name == "ENV" || v.name == "PYTHONSTARTUP" {
			// A profile of the caller's: people write tokens into them.
			if text, ok := f.small(p); ok && !f.there(p) && holdsSecret(text) {
				f.note(p + " is not visible inside, though " + v.name + " names it: it looks as if it held a secret")
				continue
			}
		}
		if r, ok := f.add(f.resolve(p, "/"), holding, v.name+" names it: "+v.why); ok && r.Info.IsDir() {
			f.inspect(r.Path)
		}
	}
	for p := range strings.SplitSeq(f.env["NIX_PROFILES"], " ") {
		f.tree(p, "NIX_PROFILES names it")
	}
	for _, name := range programVars {
		for w := range strings.FieldsSeq(f.env[name]) {
			if strings.HasPrefix(w, "/") { // CC="ccache /opt/x/bin/gcc"
				f.program(f.resolve(w, "/"), 1)
			}
		}
	}
	f.goFlags()
}

// scanLinks is scan for a directory of libraries, of which only links lead anywhere.
func (f *finder) scanLinks(dir string) {
	if f.done["*"+dir] {
		return
	}
	f.done["*"+dir] = true
	root := f.rootShown(dir)
	for _, e := range f.readDir(dir) {
		if isLink(e) {
			f.followOut(hostfs.Join(dir, e.Name()), root, "where a name of "+dir+" leads")
		}
	}
}
