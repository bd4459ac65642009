package toolchain

import "strconv"

// launcher keeps the ranks of an MPI run, each in a cage of its own, from the shared memory that does not work between
// cages: equal process numbers make Open MPI 4 take a neighbour's memory for its own and die of SIGSEGV, and processes of
// other user namespaces cannot be read, which it waits for without end. TCP between them works.
func (f *finder) launcher() {
	if !f.manyRanks() {
		return
	}
	f.pin("OMPI_MCA_btl", "^vader", "one MPI rank of several in a cage of its own: Open MPI's shared memory between cages ends in SIGSEGV or a hang")
	f.pin("PMIX_MCA_gds", "hash", "the PMIx server's shared memory is not visible: this one sends the data instead")
}

// manyRanks says whether the environment is that of one rank of an MPI run that has more than one.
func (f *finder) manyRanks() bool {
	for _, name := range [...]string{"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS", "PALS_SIZE"} {
		if v, set := f.env[name]; set {
			n, err := strconv.Atoi(v)
			return err != nil || n > 1
		}
	}
	for _, name := range [...]string{"PMIX_RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK", "MPI_LOCALRANKID", "PALS_RANKID"} {
		if _, set := f.env[name]; set {
			return f.tasks() != 1
		}
	}
	if _, set := f.env["FLUX_TASK_RANK"]; set {
		return f.env["FLUX_JOB_SIZE"] != "1"
	}
	// A batch script has SLURM_PROCID=0 and is no rank: it has no step, or one of a single task.
	return f.env["SLURM_PROCID"] != "" && f.env["SLURM_STEP_ID"] != "" && f.tasks() > 1
}

// tasks is the number of tasks in this step of a Slurm job, 0 where that is not known.
func (f *finder) tasks() int {
	n, err := strconv.Atoi(f.env["SLURM_STEP_NUM_TASKS"])
	if err != nil {
		return 0
	}
	return n
}
