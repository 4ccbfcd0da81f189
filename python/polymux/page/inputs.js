// The inputs of the forms by operation. They survive Back, a change of the model and, except files, a reload.

const KEPT = "polymux.inputs.";
/** Files by the names of operations and fields. The browser's storage would keep them on the disk. */
const files = new Map();
/** The files that the jobs of this page got, by the ID of the job: {field: file}. */
const uploaded = new Map();

export class Inputs {
	constructor(operation) {
		this.operation = operation;
		const kept = JSON.parse(sessionStorage.getItem(KEPT + operation) ?? "{}");
		/** The ID of the variant, of the last job, and the values by field. */
		this.kept = { variant: null, job: null, values: {}, ...kept };
		if (!files.has(operation)) files.set(operation, new Map());
		this.files = files.get(operation);
	}

	get(name) {
		return this.files.get(name) ?? this.kept.values[name];
	}

	/** Stores the value of a field. `undefined` is the default. */
	set(name, value) {
		this.files.delete(name);
		delete this.kept.values[name];
		if (value instanceof File) this.files.set(name, value);
		else if (value !== undefined) this.kept.values[name] = value;
		this.save();
	}

	keep(more) {
		Object.assign(this.kept, more);
		this.save();
	}

	clear() {
		this.files.clear();
		this.keep({ values: {} });
	}

	save() {
		try {
			sessionStorage.setItem(KEPT + this.operation, JSON.stringify(this.kept));
		} catch {
			// The storage is full. The inputs are lost only by a reload.
		}
	}
}

/** Fills in a field of another operation and opens it. */
export function handOver(operation, field, value, variant = null) {
	const inputs = new Inputs(operation);
	inputs.set(field, value);
	inputs.keep({ job: null, ...(variant && { variant }), source: field });
	location.hash = `#/playground/${operation}`;
}

/** Remembers the files of a job, to show them beside its result. */
export function setUploaded(job, given) {
	uploaded.set(job, given);
}

/** The files of a job by field, if this page sent them. */
export function uploadedOf(job) {
	return uploaded.get(job) ?? {};
}
