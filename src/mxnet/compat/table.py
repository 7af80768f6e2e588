"""The table of undocumented paths and names that programs use: paths of files, and names that a module only imports.

Programs depend on the file of a class (as pickles do), and on names that a file imports for its own use. Each is resolved to the real object by
`finder`; names that need MXNet's C library are left out.
"""

# The targets of names that occur in several modules; any other name's target is the module of that name.
COMMON = {
    "AttrScope": "mxnet.attribute:AttrScope", "C": "mxnet.contrib.text._constants", "CSRNDArray": "mxnet.ndarray:CSRNDArray",
    "CachedOp": "mxnet.gluon.cached_op:CachedOp", "Context": "mxnet.context:Context", "Features": "mxnet.runtime:Features",
    "HybridBlock": "mxnet.gluon:HybridBlock", "HybridConcurrent": "mxnet.gluon.contrib.nn:HybridConcurrent", "Lock": "threading:Lock",
    "NDArray": "mxnet.ndarray:NDArray", "NDArrayBase": "mxnet.ndarray:NDArray", "Number": "numbers:Number",
    "OrderedDict": "collections:OrderedDict", "POINTER": "ctypes:POINTER",
    "Symbol": "mxnet.symbol:Symbol", "SymbolBase": "mxnet.symbol:Symbol",
    "_DTYPE_MX_TO_NP": "mxnet.ops.dtypes:FLAG_TO_NUMPY", "_DTYPE_NP_TO_MX": "mxnet.ops.dtypes:NUMPY_TO_FLAG",
    "_GRAD_REQ_MAP": "mxnet.ndarray.ndarray:GRAD_REQS", "_MXClassPropertyMetaClass": "mxnet.base:ClassPropertyType",
    "_NDARRAY_ADVANCED_INDEXING": "mxnet.ndarray.indexing:ADVANCED", "_NDARRAY_BASIC_INDEXING": "mxnet.ndarray.indexing:BASIC",
    "_NDARRAY_EMPTY_TUPLE_INDEXING": "mxnet.ndarray.index_helpers:EMPTY_TUPLE",
    "_NDARRAY_NO_ZERO_DIM_BOOL_ARRAY": "mxnet.ndarray.index_helpers:NO_BOOLEAN",
    "_NDARRAY_UNSUPPORTED_INDEXING": "mxnet.ndarray.indexing:UNSUPPORTED",
    "_NDARRAY_ZERO_DIM_BOOL_ARRAY_FALSE": "mxnet.ndarray.index_helpers:BOOLEAN_FALSE",
    "_NDARRAY_ZERO_DIM_BOOL_ARRAY_TRUE": "mxnet.ndarray.index_helpers:BOOLEAN_TRUE",
    "_NP_EXT_OP_SUBMODULE_LIST": "mxnet.compat.operator_names:NPX_SUBMODULES", "_NP_OP_SUBMODULE_LIST": "mxnet.compat.operator_names:NP_SUBMODULES",
    "_NUMPY_ARRAY_FUNCTION_DICT": "mxnet.numpy.protocols:_functions", "_NUMPY_ARRAY_UFUNC_DICT": "mxnet.numpy.protocols:_ufuncs",
    "_Null": "mxnet.base:_Null", "_SIGNED_INT32_UPPER_LIMIT": "mxnet.ndarray.index_helpers:INT32_LIMIT",
    "_STORAGE_TYPE_CSR": "mxnet.ndarray.ndarray:_STORAGE_TYPE_CSR", "_STORAGE_TYPE_DEFAULT": "mxnet.ndarray.ndarray:_STORAGE_TYPE_DEFAULT",
    "_STORAGE_TYPE_ROW_SPARSE": "mxnet.ndarray.ndarray:_STORAGE_TYPE_ROW_SPARSE",
    "_STORAGE_TYPE_STR_TO_ID": "mxnet.ndarray.ndarray:_STORAGE_TYPE_STR_TO_ID",
    "_STORAGE_TYPE_UNDEFINED": "mxnet.ndarray.ndarray:_STORAGE_TYPE_UNDEFINED", "_STR_2_DTYPE_": "mxnet.numpy.official:TYPES",
    "_as_list": "mxnet.base:_as_list", "_check_all_np_ndarrays": "mxnet.compat.helpers:check_np",
    "_check_same_symbol_type": "mxnet.compat.helpers:check_one_kind", "_flatten_list": "mxnet.compat.helpers:flatten",
    "_get_broadcast_shape": "numpy:broadcast_shapes", "_get_np_op": "mxnet.numpy.official:function",
    "_get_op_submodule_name": "mxnet.compat.operator_names:submodule_of", "_getdata_by_idx": "mxnet.compat.helpers:entries",
    "_has_instance": "mxnet.io.ndarray_iter:_has_instance", "_indent": "mxnet.gluon.utils:_indent",
    "_init_data": "mxnet.io.ndarray_iter:_named_arrays", "_int64_enabled": "mxnet.compat.helpers:large_arrays",
    "_internal": "mxnet.ndarray._internal", "_load_data": "mxnet.compat.executor_manager:_load_data",
    "_load_label": "mxnet.compat.executor_manager:_load_label", "_mx_nd_np": "mxnet.numpy", "_mx_np": "mxnet.numpy",
    "_mx_npx": "mxnet.numpy_extension", "_ndarray_cls": "mxnet.ndarray:NDArray", "_np": "numpy", "_np_ndarray_cls": "mxnet.numpy:ndarray",
    "_npi": "mxnet.numpy._internal", "_numpy_op_doc": "mxnet._numpy_op_doc", "_os": "os", "_re": "re",
    "_slice_along_batch_axis": "mxnet.compat.helpers:part_of_batch", "_sys": "sys", "array": "array:array", "base": "mxnet.base",
    "c_array": "mxnet.base:c_array", "c_array_buf": "mxnet.base:c_array_buf", "c_handle_array": "mxnet.base:c_handle_array",
    "c_str_array": "mxnet.base:c_str_array", "check_call": "mxnet.base:check_call", "clip": "mxnet.ndarray:clip", "context": "mxnet.context",
    "ctx": "mxnet.context", "current_context": "mxnet.context:current_context", "defaultdict": "collections:defaultdict", "finfo": "numpy:finfo",
    "integer_types": "mxnet.base:integer_types", "io": "mxnet.io", "is_np_array": "mxnet.util:is_np_array", "load_json": "mxnet.symbol:load_json",
    "lstsq": "numpy.linalg:lstsq", "mx": "mxnet", "mx_np": "mxnet.numpy", "mx_real_t": "mxnet.base:mx_real_t",
    "namedtuple": "collections:namedtuple", "native_array": "array:array", "nd": "mxnet.ndarray", "ndarray": "mxnet.ndarray", "np": "numpy",
    "numeric_types": "mxnet.base:numeric_types", "onp": "numpy", "opt": "mxnet.optimizer", "py_slice": "builtins:slice",
    "py_str": "mxnet.base:py_str", "qr": "numpy.linalg:qr", "recordio": "mxnet.recordio", "set_module": "mxnet.util:set_module",
    "spsp": "scipy.sparse", "sqrt": "mxnet.ndarray:sqrt", "square": "mxnet.ndarray:square", "string_types": "mxnet.base:string_types",
    "symbol": "mxnet.symbol", "with_metaclass": "mxnet.base:with_metaclass", "wrap_np_binary_func": "mxnet.util:wrap_np_binary_func",
    "wrap_np_unary_func": "mxnet.util:wrap_np_unary_func", "zeros": "mxnet.ndarray:zeros",
}

# Modules without missing names; the finder only adds suggestions for misspelled names.
SUGGESTING = ("mxnet.callback", "mxnet.contrib.text.utils", "mxnet.error", "mxnet.gluon.contrib.estimator", "mxnet.gluon.data.batchify",
              "mxnet.gluon.data.vision.transforms", "mxnet.gluon.metric", "mxnet.gluon.probability", "mxnet.log", "mxnet.lr_scheduler",
              "mxnet.monitor")

# Modules, and their additional names: those that MXNet 1.9.1 has there, and those that MXNet 2 moved there. ``name`` is looked up in `COMMON`,
# ``name=module`` is a module; after ``module:`` names are attributes of that module, ``name=other`` is its attribute ``other``, and ``*`` means all
# of its attributes. A module without a file is created from its line.
NAMES = {
    "mxnet": "_numpy_op_doc",
    **{f"mxnet.optimizer.{path}": f"mxnet.optimizer: {name}" for path, name in (
        ("adabelief", "AdaBelief"), ("adadelta", "AdaDelta"), ("adagrad", "AdaGrad"), ("adam", "Adam"), ("adamW", "AdamW"), ("adamax", "Adamax"),
        ("dcasgd", "DCASGD"), ("ftml", "FTML"), ("lamb", "LAMB"), ("lans", "LANS"), ("lars", "LARS"), ("nadam", "Nadam"),
        ("nag", "NAG"), ("rmsprop", "RMSProp"), ("sgld", "SGLD"), ("signum", "Signum"), ("utils", "Updater get_updater"))},
    "mxnet._ctypes": "",
    "mxnet._ctypes.ndarray": "CachedOp NDArrayBase _global_var=mxnet._global_var c_handle_array c_str_array check_call ctypes=ctypes",
    "mxnet._ctypes.symbol":
        "SymbolBase c_handle_array c_str_array check_call ctypes=ctypes mxnet.base: c_str mxnet.symbol: _symbol_cls=Symbol "
        "mxnet.symbol.numpy: _np_symbol_cls=_Symbol",
    "mxnet._global_var": "_ndarray_cls _np_ndarray_cls",
    "mxnet.api": "",
    "mxnet.attribute": "_MXClassPropertyMetaClass defaultdict string_types with_metaclass",
    "mxnet.autograd":
        "Lock POINTER Symbol _GRAD_REQ_MAP _ndarray_cls array c_array c_array_buf c_handle_array check_call string_types traceback "
        "mxnet.ndarray.dispatch: _RecordingStateScope=Scope",
    "mxnet.base":
        "_MXClassPropertyMetaClass _NP_EXT_OP_SUBMODULE_LIST _NP_OP_SUBMODULE_LIST _get_op_submodule_name _np atexit inspect libinfo=mxnet.libinfo "
        "platform re sys mxnet.compat.operator_names: _NP_EXT_OP_PREFIX=NPX_PREFIX _NP_INTERNAL_OP_PREFIX=NP_INTERNAL_PREFIX "
        "_NP_OP_PREFIX=NP_PREFIX _NP_OUTPUT_IS_LIST_OPERATORS=LISTS _OP_NAME_PREFIX_LIST=PREFIXES _get_op_name_prefix=prefix_of "
        "_is_np_op=is_of_numpy _output_is_list=returns_list add_fileline_to_docstring build_param_doc builtins: basestring=str long=int mxnet.base: "
        "_MXClassPropertyDescriptor=classproperty",
    "mxnet.context": "_MXClassPropertyMetaClass check_call warnings with_metaclass",
    "mxnet.contrib.amp.amp":
        "NDArray _DTYPE_MX_TO_NP _DTYPE_NP_TO_MX array base ndarray np opt symbol symbol_contrib=mxnet.symbol.contrib trainer=mxnet.gluon.trainer "
        "mxnet.compat.operator_names: _get_fun_to_wrap=place_of mxnet.contrib.amp.calls: _cast_symbol_NDArray=cast_to mxnet.contrib.amp.amp: "
        "_amp_initialized=_State.initialized _amp_loss_scale_initialized=_State.scaler_taken _loss_scaler=_State.scaler",
    "mxnet.contrib.amp.loss_scaler": "ag=mxnet.autograd nd mxnet.ndarray: multi_all_finite",
    "mxnet.contrib.autograd": "_GRAD_REQ_MAP array c_array c_array_buf c_handle_array check_call string_types",
    "mxnet.contrib.ndarray": "mxnet.ndarray.contrib: *",
    "mxnet.contrib.onnx":
        "mxnet.onnx: export_model_=export_model mxnet.contrib.onnx.onnx2mx.import_model: get_model_metadata_=get_model_metadata "
        "import_model_=import_model mxnet.contrib.onnx.onnx2mx.import_to_gluon: import_to_gluon_=import_to_gluon",
    "mxnet.contrib.onnx.onnx2mx":
        "_import_helper=mxnet.contrib.onnx.onnx2mx._import_helper _translation_utils=mxnet.contrib.onnx.onnx2mx._translation_utils",
    "mxnet.contrib.onnx.onnx2mx._translation_utils": "context io=mxnet.io module=mxnet.module nd symbol",
    "mxnet.contrib.onnx.onnx2mx.import_onnx": "nd np string_types mxnet.contrib.onnx.onnx2mx.registry: convert_map=TRANSLATIONS",
    "mxnet.contrib.onnx.onnx2mx.import_to_gluon": "mxnet.contrib.onnx.onnx2mx.import_onnx: GraphProto",
    "mxnet.contrib.quantization":
        "Context NDArray Symbol c_array c_str_array check_call logging ndarray np os py_str shutil stats=scipy.stats warnings mxnet.context: cpu "
        "mxnet.io: DataBatch DataDesc DataIter mxnet.module: Module mxnet.ndarray: nd_load=load nd_save=save mxnet.symbol: sym_load=load "
        "mxnet.contrib.quantization.networks: _DataIterWrapper=_Batches "
        "mxnet.contrib.quantization.models: _collect_layer_statistics=collect_statistics",
    "mxnet.contrib.svrg_optimization.svrg_module": "mx time",
    "mxnet.contrib.svrg_optimization.svrg_optimizer": "mx",
    "mxnet.contrib.symbol": "mxnet.symbol.contrib: *",
    "mxnet.contrib.text._constants":
        "mxnet.contrib.text._pretrained: FAST_TEXT_ARCHIVE_SHA1=FASTTEXT_ARCHIVES FAST_TEXT_FILE_SHA1=FASTTEXT_FILES "
        "GLOVE_PRETRAINED_ARCHIVE_SHA1=GLOVE_FILES GLOVE_PRETRAINED_FILE_SHA1=GLOVE_ARCHIVES mxnet.contrib.text.vocab: UNKNOWN_IDX=UNKNOWN "
        "mxnet.environment: APACHE_REPO_URL=REPOSITORY",
    "mxnet.contrib.text.embedding": "C _mx_np _mx_npx base",
    "mxnet.contrib.text.vocab": "C",
    "mxnet.engine": "check_call mxnet.engine: _BulkScope=bulk",
    "mxnet.executor":
        "_load_data _load_label _ndarray_cls c_array_buf c_handle_array c_str_array check_call copy ndarray py_str array: py_array=array "
        "mxnet.compat.executor_manager: _check_arguments _split_input_slice",
    "mxnet.executor_manager":
        "logging mx_real_t nd np mxnet.compat.executor_manager: _bind_exec mxnet.context: cpu mxnet.compat.executor_manager: *",
    "mxnet.gluon.block":
        "NDArray Symbol _check_all_np_ndarrays _check_same_symbol_type _mx_np _mx_npx _name=mxnet.name copy defaultdict json load_json mx_real_t np "
        "np_symbol=mxnet.symbol.numpy symbol mxnet.gluon.hybrid_block: HybridBlock mxnet.gluon.parameter: DeferredInitializationError "
        "mxnet.gluon.nested: _flatten=flatten _gather_type_ctx_info=kinds_and_contexts _regroup=regroup "
        "mxnet.gluon.symbol_block: SymbolBlock _common_prefix _infer_param_types mxnet.util: np_array np_shape",
    "mxnet.gluon.contrib.cnn.conv_layers": "numeric_types symbol",
    "mxnet.gluon.contrib.data._constants": "mxnet.contrib.text.datasets: EOS_TOKEN=END",
    "mxnet.gluon.contrib.data.text":
        "C=mxnet.gluon.contrib.data._constants base dataset=mxnet.gluon.data.dataset nd np os shutil text=mxnet.contrib.text zipfile "
        "mxnet.gluon.utils: _get_repo_file_url check_sha1 download mxnet.contrib.text.datasets: *",
    "mxnet.gluon.contrib.data.sampler": "sampler=mxnet.gluon.data.sampler",
    "mxnet.gluon.contrib.nn.basic_layers": "context nd",
    "mxnet.gluon.contrib.rnn.conv_rnn_cell": "numeric_types math: floor",
    "mxnet.gluon.contrib.rnn.rnn_cell": "_as_list",
    "mxnet.gluon.data": "mxnet.gluon.contrib.data: IntervalSampler",
    "mxnet.gluon.data.dataloader":
        "_mx_np io=io nd signal sys threading mxnet.compat.data_workers: ConnectionWrapper _MultiWorkerIterV1 fetcher_loop_v1 worker_loop_v1 "
        "multiprocessing: Queue SimpleQueue multiprocessing.pool: ThreadPool mxnet.gluon.data.shared_memory: rebuild_ndarray "
        "rebuild_np_ndarray=rebuild_ndarray reduce_np_ndarray=reduce_ndarray mxnet.gluon.data.dataloader: DataLoaderV1=DataLoader",
    "mxnet.gluon.data.dataset": "ndarray",
    "mxnet.gluon.data.vision.datasets": "_mx_np nd",
    "mxnet.gluon.loss": "is_np_array np",
    "mxnet.gluon.model_zoo.model_store": "shutil tempfile uuid mxnet.gluon.utils: replace_file mxnet.environment: apache_repo_url=REPOSITORY",
    "mxnet.gluon.model_zoo.vision.alexnet": "HybridBlock base os",
    "mxnet.gluon.model_zoo.vision.densenet":
        "HybridBlock HybridConcurrent base os "
        "mxnet.gluon.model_zoo.vision.densenet: _make_dense_layer=_dense_layer",
    "mxnet.gluon.model_zoo.vision.inception": "HybridBlock base os",
    "mxnet.gluon.model_zoo.vision.mobilenet": "base os",
    "mxnet.gluon.model_zoo.vision.resnet": "base is_np_array os mxnet.gluon.model_zoo.vision._blocks: _conv3x3=conv3x3",
    "mxnet.gluon.model_zoo.vision.squeezenet": "HybridBlock HybridConcurrent base os mxnet.gluon.model_zoo.vision.squeezenet: _make_fire_conv=_conv",
    "mxnet.gluon.model_zoo.vision.vgg": "HybridBlock base os",
    "mxnet.gluon.nn":
        "mxnet.gluon.contrib.nn: Concatenate=Concurrent HybridConcatenate=HybridConcurrent Identity PixelShuffle1D PixelShuffle2D PixelShuffle3D "
        "SyncBatchNorm mxnet.gluon.contrib.cnn: DeformableConvolution ModulatedDeformableConvolution",
    "mxnet.gluon.nn.activations": "is_np_array",
    "mxnet.gluon.nn.basic_layers": "_indent is_np_array nd np sym=mxnet.symbol mxnet.gluon.nn.normalization: _BatchNorm",
    "mxnet.gluon.nn.conv_layers": "is_np_array symbol mxnet.compat.helpers: _infer_weight_shape=infer_input_shapes mxnet.gluon.nn.pooling_layers: *",
    "mxnet.gluon.parameter":
        "OrderedDict _indent _mx_np context defaultdict mxnet.gluon.parameter_dict: ParameterDict mxnet.gluon.utils: _brief_print_list",
    "mxnet.gluon.rnn":
        "mxnet.gluon.contrib.rnn: Conv1DGRUCell Conv1DLSTMCell Conv1DRNNCell Conv2DGRUCell Conv2DLSTMCell Conv2DRNNCell Conv3DGRUCell "
        "Conv3DLSTMCell Conv3DRNNCell LSTMPCell VariationalDropoutCell",
    "mxnet.gluon.rnn.rnn_cell":
        "_as_list _indent numeric_types symbol mxnet.gluon.parameter: tensor_types "
        "mxnet.gluon.rnn.container_cells: BidirectionalCell HybridSequentialRNNCell SequentialRNNCell _cells_begin_state _cells_state_info "
        "mxnet.gluon.rnn.modifier_cells: DropoutCell ModifierCell ResidualCell ZoneoutCell mxnet.gluon.rnn.sequences: _reverse_sequences",
    "mxnet.gluon.rnn.rnn_layer": "is_np_array rnn_cell=mxnet.gluon.rnn.rnn_cell",
    "mxnet.gluon.trainer":
        "opt "
        "mxnet.kvstore.updates: _create_kvstore=create_kvstore _create_sparse_kvstore=create_sparse_kvstore",
    "mxnet.gluon.utils": "_check_all_np_ndarrays _check_same_symbol_type _mx_np is_np_array np requests sys uuid",
    "mxnet.image": "Number cv2 io is_np_array json logging nd np numeric_types os random recordio sys warnings",
    "mxnet.image.detection": "_mx_np io is_np_array nd mxnet.image: *",
    "mxnet.image.image": "_mx_np _npi cv2 io json logging nd os recordio sys mxnet.compat.helpers: _get_interp_method=interp_method mxnet.image: *",
    "mxnet.initializer": "_mx_np is_np_array ndarray string_types",
    "mxnet.io": "_getdata_by_idx _has_instance _init_data",
    "mxnet.io.io":
        "CSRNDArray NDArray _getdata_by_idx _has_instance _init_data _ndarray_cls _slice_along_batch_axis logging mx_real_t namedtuple np sys "
        "threading mxnet.io: * mxnet.ndarray: array concat tile",
    "mxnet.io.utils":
        "CSRNDArray NDArray OrderedDict _getdata_by_idx _has_instance _init_data _slice_along_batch_axis h5py np mxnet.io: * mxnet.ndarray: array "
        "mxnet.ndarray.sparse: sparse_array=array",
    "mxnet.kvstore.base": "array string_types mxnet.profiler: set_kvstore_handle",
    "mxnet.kvstore.kvstore": "_ndarray_cls os pickle",
    "mxnet.kvstore.kvstore_server": "logging pickle sys mxnet.kvstore.base: create",
    "mxnet.libinfo": "logging platform",
    "mxnet.library": "check_call sys",
    "mxnet.metric":
        "OrderedDict math ndarray numeric_types numpy registry=mxnet.registry string_types mxnet.metric.classification: "
        "_BinaryClassificationMetrics mxnet.metric.base: _create",
    "mxnet.misc": "mxnet.compat.misc: *",
    "mxnet.model":
        "Context io kvs=mxnet.kvstore logging metric=mxnet.metric mx_real_t namedtuple nd np opt os sym=mxnet.symbol time warnings "
        "builtins: BASE_ESTIMATOR=object mxnet.context: cpu mxnet.initializer: Uniform mxnet.io: DataDesc "
        "mxnet.kvstore.updates: _create_kvstore=create_kvstore _create_sparse_kvstore=create_sparse_kvstore "
        "_initialize_kvstore=initialize_kvstore _update_params=update_params _update_params_on_kvstore=update_params_on_kvstore "
        "_update_params_on_kvstore_nccl=update_params_on_kvstore_nccl "
        "mxnet.compat.executor_manager: DataParallelExecutorManager _check_arguments _load_data "
        "mxnet.compat.feedforward: SKLEARN_INSTALLED _multiple_callbacks _train_multi_device mxnet.optimizer: get_updater",
    "mxnet.module.base_module": "mxnet.context: cpu",
    "mxnet.module.bucketing_module": "ctx",
    "mxnet.module.executor_group":
        "OrderedDict _DTYPE_MX_TO_NP _load_data _load_label ctx mxnet.compat.executor_manager: _load_general "
        "mxnet.module.executor_group: _prepare_group2ctxs=groups_per_device",
    "mxnet.module.module":
        "ctx zeros "
        "mxnet.kvstore.updates: _create_kvstore=create_kvstore _initialize_kvstore=initialize_kvstore _update_params=update_params "
        "_update_params_on_kvstore=update_params_on_kvstore",
    "mxnet.name": "_MXClassPropertyMetaClass with_metaclass",
    "mxnet.ndarray": "CachedOp _DTYPE_MX_TO_NP _DTYPE_NP_TO_MX _GRAD_REQ_MAP _ndarray_cls",
    "mxnet.ndarray._internal": "CachedOp NDArrayBase _Null _os _sys",
    "mxnet.ndarray.contrib":
        "_flatten_list mx ndarray np mxnet.compat.helpers: _get_rescale_grad=rescale_array mxnet.ndarray.nested: _flatten=flatten _regroup=regroup",
    "mxnet.ndarray.ndarray":
        "Features NDArrayBase _DTYPE_MX_TO_NP _DTYPE_NP_TO_MX _GRAD_REQ_MAP "
        "_NDARRAY_ADVANCED_INDEXING _NDARRAY_BASIC_INDEXING _NDARRAY_EMPTY_TUPLE_INDEXING "
        "_NDARRAY_NO_ZERO_DIM_BOOL_ARRAY _NDARRAY_UNSUPPORTED_INDEXING _NDARRAY_ZERO_DIM_BOOL_ARRAY_FALSE _NDARRAY_ZERO_DIM_BOOL_ARRAY_TRUE "
        "_SIGNED_INT32_UPPER_LIMIT _get_broadcast_shape _int64_enabled is_np_array mx_real_t native_array operator py_slice warnings "
        "mxnet.ndarray.index_helpers: _broadcast_shapes=broadcast_shapes _get_dim_size=slice_size _get_index_range=index_range "
        "_get_slice_len=slice_length _int_to_slice=int_to_slice _is_advanced_index=is_advanced _shape_for_bcast=shape_for_broadcast "
        "check_boolean_array_dimension=check_boolean_shape mxnet.compat.helpers: _ufunc_helper=array_ufunc functools: reduce mxnet.ndarray: *",
    "mxnet.ndarray.numpy": "mxnet.numpy: *",
    "mxnet.ndarray.numpy_extension": "mxnet.numpy_extension: *",
    "mxnet.ndarray.op": "CachedOp",
    "mxnet.ndarray.random": "_internal mxnet.compat.helpers: _random_helper=draw",
    "mxnet.ndarray.sparse":
        "Context NDArray _DTYPE_MX_TO_NP _DTYPE_NP_TO_MX _STORAGE_TYPE_CSR _STORAGE_TYPE_DEFAULT _STORAGE_TYPE_ROW_SPARSE _STORAGE_TYPE_STR_TO_ID "
        "_STORAGE_TYPE_UNDEFINED _internal _ndarray_cls c_array_buf check_call current_context integer_types mx_real_t native_array np "
        "numeric_types op=mxnet.ndarray operator py_slice spsp warnings mxnet.compat.helpers: _STORAGE_AUX_TYPES=INDEX_TYPES "
        "_check_shape=check_shapes _csr_matrix_from_definition=csr_from_parts _prepare_default_dtype=default_type _prepare_src_array=source_array "
        "_row_sparse_ndarray_from_definition=rows_from_parts builtins: py_sum=sum mxnet.base: NotSupportedForSparseNDArray",
    "mxnet.ndarray.utils":
        "_ndarray_cls spsp string_types "
        "mxnet.ndarray: _array=array _empty_ndarray=empty _zeros_ndarray=zeros * "
        "mxnet.ndarray.sparse: _empty_sparse_ndarray=empty _sparse_array=array _zeros_sparse_ndarray=zeros",
    "mxnet.ndarray_doc": "_re",
    "mxnet.notebook": "bokeh",
    "mxnet.notebook.callback": "defaultdict mxnet.compat.helpers: _add_new_columns=add_columns _extend=extend",
    "mxnet.numpy": "_STR_2_DTYPE_",
    "mxnet.numpy._internal": "mxnet.numpy_op_fallback: empty_like_fallback=empty_like_of_arrays unravel_index_fallback=unravel_index_of_arrays",
    "mxnet.numpy.arrayprint": "onp set_module mxnet.numpy: *",
    "mxnet.numpy.fallback": "mxnet.numpy: *",
    "mxnet.numpy.fallback_linalg": "lstsq onp qr mxnet.numpy.linalg: *",
    "mxnet.numpy.function_base": "mxnet.numpy: *",
    "mxnet.numpy.io": "current_context onp mxnet.numpy: *",
    "mxnet.numpy.linalg": "_mx_nd_np _npi fallback_linalg=mxnet.numpy.linalg lstsq qr",
    "mxnet.numpy.multiarray":
        "_DTYPE_NP_TO_MX _GRAD_REQ_MAP _NDARRAY_ADVANCED_INDEXING _NDARRAY_BASIC_INDEXING _NDARRAY_EMPTY_TUPLE_INDEXING "
        "_NDARRAY_NO_ZERO_DIM_BOOL_ARRAY _NDARRAY_UNSUPPORTED_INDEXING _NDARRAY_ZERO_DIM_BOOL_ARRAY_FALSE _NDARRAY_ZERO_DIM_BOOL_ARRAY_TRUE "
        "_NUMPY_ARRAY_FUNCTION_DICT _NUMPY_ARRAY_UFUNC_DICT _get_np_op _mx_nd_np _mx_np_op=mxnet.numpy _np _np_ndarray_cls _npi current_context "
        "mx_real_t native_array py_slice set_module wrap_np_binary_func wrap_np_unary_func mxnet.compat.helpers: _reshape_view=reshaped_view "
        "mxnet.autograd: is_recording mxnet.ndarray: from_numpy get_indexing_dispatch_code get_oshape_of_gather_nd_op "
        "indexing_key_expand_implicit_axes mxnet.numpy: * mxnet.numpy.fallback: _as_mx_np_array=from_official _as_onp_array=to_official",
    "mxnet.numpy.random": "_mx_nd_np _npi np",
    "mxnet.numpy.stride_tricks": "_get_broadcast_shape _mx_nd_np mxnet.ndarray.index_helpers: _broadcast_shape=broadcast_shape_of mxnet.numpy: *",
    "mxnet.numpy.utils": "_STR_2_DTYPE_ _get_np_op finfo onp mxnet.numpy.official: _ONP_OP_MODULES=MODULES mxnet.numpy: *",
    "mxnet.numpy_dispatch_protocol":
        "_NUMPY_ARRAY_FUNCTION_DICT _NUMPY_ARRAY_UFUNC_DICT _np mx_np mxnet.compat.helpers: _find_duplicate=first_duplicate mxnet.numpy.protocols: "
        "_implements=implements mxnet.numpy.protocols: _NUMPY_ARRAY_FUNCTION_LIST=FUNCTIONS _NUMPY_ARRAY_UFUNC_LIST=UFUNCS",
    "mxnet.numpy_extension": "check_call threading warnings with_metaclass mxnet.base: classproperty",
    "mxnet.numpy_extension.image": "Number cv2 io is_np_array json logging nd np numeric_types os random recordio sys warnings",
    "mxnet.numpy_extension.random": "_mx_nd_npx=mxnet.numpy_extension _mx_rand=mxnet.random _npi",
    "mxnet.numpy_extension.utils": "string_types mxnet.numpy: ndarray mxnet.numpy_extension: *",
    "mxnet.numpy_op_fallback":
        "_STR_2_DTYPE_ _mx_np _nd_npi=mxnet.numpy._internal _sym_npi=mxnet.symbol.numpy._internal distutils.version: StrictVersion "
        "mxnet.util: use_np",
    "mxnet.numpy_op_signature":
        "_NP_EXT_OP_SUBMODULE_LIST _NP_OP_SUBMODULE_LIST _get_op_submodule_name _numpy_op_doc inspect mx_np mx_npx=mxnet.numpy_extension",
    "mxnet.onnx.mx2onnx": "_op_translations_opset12=mxnet.onnx.mx2onnx.operators _op_translations_opset13=mxnet.onnx.mx2onnx.operators",
    "mxnet.onnx.mx2onnx._export_helper": "logging mx",
    "mxnet.onnx.mx2onnx._export_model": "string_types symbol=mxnet.symbol mxnet.onnx.mx2onnx._export_onnx: MXNetGraph",
    "mxnet.onnx.mx2onnx._export_onnx": "json logging nd",
    "mxnet.onnx.mx2onnx._op_translations": "",
    "mxnet.onnx.mx2onnx._op_translations._op_translations_opset12": "mxnet.onnx.mx2onnx.operators: *",
    "mxnet.onnx.mx2onnx._op_translations._op_translations_opset13": "mxnet.onnx.mx2onnx.operators: *",
    "mxnet.operator":
        "Lock POINTER _DTYPE_MX_TO_NP _DTYPE_NP_TO_MX _STORAGE_TYPE_CSR _STORAGE_TYPE_DEFAULT _STORAGE_TYPE_ROW_SPARSE _STORAGE_TYPE_STR_TO_ID "
        "_STORAGE_TYPE_UNDEFINED _ndarray_cls _np_ndarray_cls array c_array c_array_buf check_call context py_str symbol traceback "
        "ctypes: pointer mxnet.base: ctypes2numpy_shared mxnet.ndarray.ndarray: _STORAGE_TYPE_ID_TO_STR",
    "mxnet.optimizer.contrib": "NDArray clip contrib=mxnet.ndarray.contrib sqrt square mxnet.ndarray: mean",
    "mxnet.optimizer.optimizer":
        "NDArray _flatten_list clip is_np_array logging math numpy os pickle sparse=mxnet.ndarray.sparse sqrt square warnings zeros "
        "mxnet.compat.helpers: _as_classic=as_classic mxnet.ndarray: NDnorm=norm adam_update array ftml_update ftrl_update lamb_update_phase1 "
        "lamb_update_phase2 maximum mp_lamb_update_phase1 mp_lamb_update_phase2 mp_nag_mom_update mp_sgd_mom_update mp_sgd_update multi_lars "
        "multi_mp_sgd_mom_update multi_mp_sgd_update multi_sgd_mom_update multi_sgd_update multi_sum_sq multiply nag_mom_update "
        "preloaded_multi_mp_sgd_mom_update preloaded_multi_mp_sgd_update preloaded_multi_sgd_mom_update preloaded_multi_sgd_update rmsprop_update "
        "rmspropalex_update sgd_mom_update sgd_update signsgd_update signum_update mxnet.ndarray.contrib: multi_lamb_update multi_mp_lamb_update "
        "mxnet.ndarray.random: normal",
    "mxnet.profiler": "c_str_array check_call py_str",
    "mxnet.random": "Context check_call",
    "mxnet.recordio": "check_call cv2 namedtuple multiprocessing: current_process mxnet.recordio: _IR_SIZE=_HEADER.size",
    "mxnet.registry": "string_types",
    "mxnet.rnn":
        "bisect functools init=mxnet.initializer ndarray np numeric_types random string_types symbol warnings "
        "mxnet.io: DataBatch DataDesc DataIter mxnet.model: load_checkpoint save_checkpoint",
    "mxnet.rnn.rnn": "mxnet.rnn.checkpoint: *",
    "mxnet.rnn.rnn_cell":
        "functools numeric_types string_types warnings mxnet.compat.helpers: _cells_begin_state=cells_begin_state "
        "_cells_pack_weights=cells_pack_weights _cells_state_info=cells_state_info _cells_state_shape=cells_state_shape "
        "_cells_unpack_weights=cells_unpack_weights mxnet.rnn: * mxnet.rnn.rnn_cell: _normalize_sequence=as_steps",
    "mxnet.rtc": "_DTYPE_MX_TO_NP _DTYPE_NP_TO_MX array c_array c_array_buf c_str_array check_call string_types",
    "mxnet.runtime": "check_call",
    "mxnet.symbol._internal": "AttrScope SymbolBase _Null _os _sys mxnet.name: NameManager",
    "mxnet.symbol.contrib":
        "check_call symbol mxnet.compat.helpers: _get_graph_inputs=graph_inputs _get_sym_uniq_name=unique_name mxnet.compat.helpers: "
        "_check_data=check_data mxnet.ndarray.nested: _flatten=flatten _regroup=regroup",
    "mxnet.symbol.numpy._internal":
        "mxnet.numpy_op_fallback: empty_like_fallback=empty_like_of_symbols unravel_index_fallback=unravel_index_of_symbols",
    "mxnet.symbol.numpy._symbol":
        "Symbol _mx_np_op=mxnet.symbol.numpy _np _npi=mxnet.symbol.numpy._internal current_context integer_types load_json numeric_types py_slice "
        "set_module string_types wrap_np_binary_func wrap_np_unary_func mxnet.compat.helpers: _ufunc_helper=symbol_ufunc mxnet.compat.helpers: "
        "_unary_func_helper=unary mxnet.symbol: Group load mxnet.symbol.numpy: * mxnet.util: _sanity_check_params",
    "mxnet.symbol.numpy.linalg": "_mx_sym_np=mxnet.symbol.numpy _npi=mxnet.symbol.numpy._internal _symbol=mxnet.symbol.numpy",
    "mxnet.symbol.numpy.random": "_npi=mxnet.symbol.numpy._internal",
    "mxnet.symbol.numpy_extension.random": "_npi=mxnet.symbol.numpy._internal",
    "mxnet.symbol.random": "_internal=mxnet.symbol._internal numeric_types mxnet.compat.helpers: _random_helper=draw_symbol",
    "mxnet.symbol.symbol":
        "AttrScope Context NDArray Number SymbolBase _DTYPE_MX_TO_NP _DTYPE_NP_TO_MX _GRAD_REQ_MAP _SIGNED_INT32_UPPER_LIMIT _STORAGE_TYPE_STR_TO_ID "
        "_int64_enabled _ndarray_cls _numpy=numpy array current_context integer_types numeric_types py_slice string_types warnings mxnet.executor: "
        "Executor mxnet.symbol: * mxnet.util: is_np_shape",
    "mxnet.symbol_doc": "_re",
    "mxnet.test_utils":
        "_STORAGE_TYPE_STR_TO_ID bz2 errno gzip numbers platform requests ss=scipy.stats struct traceback zipfile mxnet.test_utils.arrays: "
        "_get_powerlaw_dataset_csr _get_uniform_dataset_csr _validate_csr_generation_inputs mxnet.test_utils.compare: _find_max_violation "
        "mxnet.compat.helpers: _sorted_dict=sorted_dict _sorted_items=sorted_items mxnet.symbol.numpy: np_symbol=_Symbol mxnet.test_utils.checks: "
        "_parse_aux_states _parse_location",
    "mxnet.torch": "sys",
    "mxnet.tvmop": "Features",
    "mxnet.util":
        "check_call py_str mxnet.compat.helpers: _np_ufunc_default_kwargs=UFUNC_DEFAULTS mxnet.numpy.creation: default_array "
        "tempfile: TemporaryDirectory",
    "mxnet.visualization": "copy mxnet.visualization: _str2tuple=_integers",
}

# Modules that are read at every step: a ``__getattr__`` costs 20 to 50 ns per read, so that their names are added to them instead.
OFTEN_READ = ("mxnet.autograd", "mxnet.numpy")

# Standard modules that programs use without an import, since MXNet's import includes them; torch's does not.
BRINGS = ("multiprocessing.pool", "multiprocessing.queues")
