/* The module itself. It finds NumPy's types and the processor's variant when it is imported. */
static int execute(PyObject *module) {
    variant = PROCESSORS - 1;
    const char *wanted = getenv("STRUCTGEN_PROCESSOR");
    while (variant >= 0 && (!runs(variant) || (wanted != NULL && strcmp(wanted, processors[variant]))))
        variant--;
    if (variant < 0) {
        PyErr_Format(PyExc_ImportError, "structgen's kernels need a processor of x86-64-v2 (2009), and this one is not%s",
                     wanted == NULL ? "" : ", or not what STRUCTGEN_PROCESSOR names");
        return -1;
    }
    PyObject *numpy = PyImport_ImportModule("numpy");
    if (numpy == NULL)
        return -1;
    ndarray = PyObject_GetAttrString(numpy, "ndarray");
    numpy_bool = PyObject_GetAttrString(numpy, "bool_");
    PyObject *dtype = PyObject_GetAttrString(numpy, "dtype");
    Py_DECREF(numpy);
    for (int i = 0; i < SCALARS && dtype != NULL; i++) {
        PyObject *name = PyUnicode_FromString(scalar_names[i]);
        if (name == NULL || (dtypes[i] = PyObject_CallFunctionObjArgs(dtype, name, NULL)) == NULL)
            return -1;
        Py_DECREF(name);
    }
    if (ndarray == NULL || numpy_bool == NULL || dtype == NULL || PyModule_AddStringConstant(module, "DIGEST", DIGEST) ||
        PyModule_AddStringConstant(module, "PROCESSOR", processors[variant]))
        return -1;
    for (int i = 0; constants[i].name != NULL; i++) {
        PyObject *value = PyLong_FromLongLong(constants[i].value);
        if (value == NULL || PyModule_AddObjectRef(module, constants[i].name, value) < 0)
            return -1;
        Py_DECREF(value);
    }
    return 0;
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, execute},
#ifdef Py_GIL_DISABLED
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_kernels", "structgen's kernels, compiled from structgen/kernels.", 0, methods, slots,
    NULL, NULL, NULL};
PyMODINIT_FUNC PyInit__kernels(void) { return PyModuleDef_Init(&definition); }
