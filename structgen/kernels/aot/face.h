/* What the face of every kernel has in common: arguments are looked at, and become what Numba's native convention
   takes: status f(results*, exception**, arguments...), where an array is seven words or nine: its owner and what it
   was made from (both null), the number of its items, the bytes of one, its data, its shape, its strides. */

/* NumPy's array object, whose beginning is part of its binary interface (PyArrayObject_fields). */
typedef struct {
    PyObject_HEAD
    char *data;
    int dimensions;
    Py_ssize_t *shape, *strides;
    PyObject *base, *dtype;
    int flags;
} Array;
enum { C_CONTIGUOUS = 0x1, ALIGNED = 0x100, WRITEABLE = 0x400 };

typedef struct {
    const char *name;
    uint8_t scalar, dimensions, is_written;
} Parameter;
typedef struct {
    const char *name;
    const Parameter *parameters;
    int count;
} Kernel;
typedef union {
    int64_t integer;
    double number;
    const Array *array;
} Value;

#define WORDS1(a, size) NULL, NULL, (int64_t)(a)->shape[0], size, (a)->data, (int64_t)(a)->shape[0], size
#define WORDS2(a, size) NULL, NULL, (int64_t)((a)->shape[0] * (a)->shape[1]), size, (a)->data, \
    (int64_t)(a)->shape[0], (int64_t)(a)->shape[1], (int64_t)((a)->shape[1] * size), size
#define TYPES1 void *, void *, int64_t, int64_t, void *, int64_t, int64_t
#define TYPES2 void *, void *, int64_t, int64_t, void *, int64_t, int64_t, int64_t, int64_t

static PyObject *ndarray, *numpy_bool, *dtypes[SCALARS];
static int variant;

static int refuse(const Kernel *kernel, int i, PyObject *given) {
    const Parameter *p = &kernel->parameters[i];
    if (!p->dimensions)
        PyErr_Format(PyExc_TypeError, "%s: %s is not %s: %R", kernel->name, p->name, scalar_names[p->scalar], given);
    else if (!PyObject_TypeCheck(given, (PyTypeObject *)ndarray))
        PyErr_Format(PyExc_TypeError, "%s: %s is not an array: %R", kernel->name, p->name, (PyObject *)Py_TYPE(given));
    else {
        const Array *array = (const Array *)given;
        PyErr_Format(PyExc_TypeError, "%s: %s is %S in %d dimensions%s%s, where %s%S in %d is needed", kernel->name,
                     p->name, array->dtype, array->dimensions, array->flags & C_CONTIGUOUS ? "" : ", not contiguous",
                     array->flags & WRITEABLE ? "" : ", read-only", p->is_written ? "writable " : "",
                     dtypes[p->scalar], p->dimensions);
    }
    return 0;
}

static inline int is_of(const Array *array, int scalar) {
    return array->dtype == dtypes[scalar] || PyObject_RichCompareBool(array->dtype, dtypes[scalar], Py_EQ) == 1;
}

static int take_scalar(const Kernel *kernel, int i, PyObject *given, Value *value) {
    int scalar = kernel->parameters[i].scalar;
    if (scalar == FLOAT64) {
        value->number = PyFloat_AsDouble(given);
        return !(value->number == -1.0 && PyErr_Occurred()) || refuse(kernel, i, given);
    }
    if ((PyObject *)Py_TYPE(given) == numpy_bool && scalar == BOOLEAN) { /* which is no integer */
        value->integer = PyObject_IsTrue(given);
        return 1;
    }
    PyObject *index = PyLong_Check(given) ? Py_NewRef(given) : PyNumber_Index(given);
    if (index == NULL)
        return refuse(kernel, i, given);
    value->integer = PyLong_AsLongLong(index);
    Py_DECREF(index);
    if (value->integer == -1 && PyErr_Occurred())
        return 0;
    return (value->integer >= least[scalar] && value->integer <= most[scalar]) || refuse(kernel, i, given);
}

/* The arguments of a call, each of the type that its kernel states; 0, with a TypeError, where one is not. */
static int take(const Kernel *kernel, PyObject *const *arguments, Py_ssize_t count, Value *values) {
    if (count != kernel->count) {
        PyErr_Format(PyExc_TypeError, "%s takes %d arguments, %zd were given", kernel->name, kernel->count, count);
        return 0;
    }
    for (int i = 0; i < kernel->count; i++) {
        PyObject *given = arguments[i];
        const Parameter *p = &kernel->parameters[i];
        if (!p->dimensions) {
            if (!take_scalar(kernel, i, given, &values[i]))
                return 0;
            continue;
        }
        const Array *array = (const Array *)given;
        int needed = C_CONTIGUOUS | ALIGNED | (p->is_written ? WRITEABLE : 0);
        if (((PyObject *)Py_TYPE(given) != ndarray && !PyObject_TypeCheck(given, (PyTypeObject *)ndarray)) ||
            array->dimensions != p->dimensions || (array->flags & needed) != needed || !is_of(array, p->scalar))
            return refuse(kernel, i, given);
        values[i].array = array;
    }
    return 1;
}

/* Where the first number of an array is; the others lie behind it in C order. Whoever hands it on keeps the array. */
static PyObject *address(PyObject *module, PyObject *given) {
    if (!PyObject_TypeCheck(given, (PyTypeObject *)ndarray) || !(((const Array *)given)->flags & C_CONTIGUOUS))
        return PyErr_Format(PyExc_TypeError, "address: %R is not a contiguous array", given);
    return PyLong_FromVoidPtr(((const Array *)given)->data);
}
