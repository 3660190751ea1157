// Names that PyTorch, Hugging Face, DeepSpeed, nanoGPT or common habit use for our fields.
#pragma once

namespace thinwire {

// All such names of one field.
struct Synonyms {
  const char* path;   // of our field, from the root of an experiment: "optimizer.lr"
  const char* names;  // with a space between two
};

// A name occurs in each section in which it means something. If none of them is the section in
// question, its first row counts.
inline constexpr Synonyms kSynonyms[] = {
    // Sections, and fields outside of them.
    {"model", "arch architecture network net"},
    {"data", "dataset datasets"},
    {"optimizer", "optim"},
    {"lr_schedule", "scheduler lr_scheduler"},
    {"evaluation", "eval validation"},
    {"pipeline", "parallelism parallel"},
    {"compression", "codecs compressor quantization"},
    {"checkpoint", "checkpointing"},
    {"epochs", "num_epochs num_train_epochs max_epochs n_epochs"},
    {"steps", "max_steps max_iters train_steps num_train_steps max_train_steps"},
    {"freeze", "frozen freeze_layers frozen_layers"},
    {"lora", "peft peft_config adapter adapters lora_config"},
    {"lora.rank", "r lora_r lora_rank"},
    {"lora.alpha", "lora_alpha"},
    {"lora.dropout", "lora_dropout"},
    {"lora.modules", "target_modules lora_target_modules"},
    {"lora.layers", "layers_to_transform"},
    {"lora.init", "adapter_path adapter_name_or_path lora_path lora_weights"},
    {"base", "quantization_config bnb_config bitsandbytes"},
    {"base.weights", "bnb_4bit_quant_type load_in_4bit load_in_8bit quant_type"},
    {"early_stop", "early_stopping early_stopping_callback"},
    {"membership", "elastic elasticity fault_tolerance"},
    {"seed", "random_seed manual_seed"},
    {"precision", "dtype torch_dtype mixed_precision amp bf16 fp16"},
    {"init", "pretrained init_from model_name_or_path pretrained_model_name_or_path"},
    {"name", "experiment_name run_name wandb_run_name"},
    {"device", "accelerator device_map"},

    // Optimizers.
    {"optimizer.lr", "learning_rate base_lr max_lr peak_lr initial_lr"},
    {"optimizer.name", "type kind algorithm optimizer_type"},
    {"optimizer.weight_decay", "wd l2"},
    {"optimizer.beta1", "betas adam_beta1"},
    {"optimizer.beta2", "adam_beta2"},
    {"optimizer.epsilon", "adam_epsilon eps"},
    {"optimizer.clip_norm",
     "max_grad_norm grad_clip grad_norm clip_grad_norm gradient_clip_val gradient_clipping "
     "gradient_clip clip"},

    // Learning rate schedules.
    {"lr_schedule.name", "lr_scheduler_type type kind"},
    {"lr_schedule.min_lr", "eta_min end_lr final_lr min_learning_rate"},
    {"lr_schedule.warmup_steps",
     "warmup num_warmup_steps warmup_num_steps warmup_iters warmup_ratio warmup_epochs"},
    {"lr_schedule.t_max",
     "lr_decay_iters decay_steps total_steps total_num_steps num_training_steps"},
    {"lr_schedule.gamma", "factor decay_rate lr_decay"},
    {"lr_schedule.step_size", "milestones step every"},

    // Data.
    {"data.batch_size", "batch bs train_batch_size global_batch_size per_device_train_batch_size"},
    {"data.name", "kind dataset_name"},
    {"data.dir", "path root folder data_dir"},
    {"data.file", "train_file text_file"},
    {"data.context",
     "block_size context_length seq_len seq_length sequence_length max_length max_seq_length "
     "max_seq_len"},
    {"data.augment", "augmentation transforms"},
    {"data.limit", "samples num_samples max_samples max_train_samples"},
    {"data.test_limit", "max_eval_samples max_test_samples"},
    {"data.held_out", "validation_samples val_size"},
    {"data.tokens", "tokenizer"},
    {"data.vocabulary", "vocab vocab_file"},
    {"data.lowercase", "do_lower_case lower_case uncased"},
    {"data.mask_rate", "mlm_probability mask_prob mask_probability"},
    {"data.task", "task_name"},
    {"data.split", "train_split validation_split"},
    {"data.verify", "check_integrity"},
    {"data.train", "train_data train_path train_bin"},
    {"data.test", "val valid validation val_file validation_file eval_file test_file"},
    {"data.type", "dtype"},
    {"data.chat", "chat_template template"},
    {"data.fields", "dataset_text_field text_column text_field"},
    {"data.loss_on", "assistant_only_loss completion_only_loss train_on_inputs"},
    {"data.packing", "pack sample_packing packing_strategy"},
    {"data.too_long", "truncation"},
    {"data.size", "image_size img_size"},

    // Models.
    {"model.name", "type kind model_type"},
    {"model.width",
     "hidden_size hidden_dim n_embd d_model dim embed_dim embedding_size channels base_channels"},
    {"model.layers", "num_layers n_layer n_layers num_hidden_layers depth"},
    {"model.heads", "num_heads n_head n_heads num_attention_heads"},
    {"model.kv_heads", "num_key_value_heads num_kv_heads n_kv_heads"},
    {"model.hidden", "intermediate_size n_inner d_ff ffn_dim ffn_hidden_size mlp_dim"},
    {"model.classes", "num_classes n_classes num_labels vocab_size n_vocab"},
    {"model.context", "max_position_embeddings n_positions n_ctx block_size"},
    {"model.dropout", "drop_rate dropout_rate resid_pdrop embd_pdrop attn_pdrop attention_dropout"},
    {"model.tied", "tie_word_embeddings tie_weights"},
    {"model.epsilon", "eps layer_norm_epsilon layer_norm_eps rms_norm_eps norm_eps"},
    {"model.rope_theta", "rope_base rotary_emb_base"},
    {"model.gelu", "activation activation_function hidden_act"},
    {"model.bias", "use_bias"},
    {"model.head_size", "head_dim"},
    {"model.no_rope_every", "no_rope_layer_interval"},
    {"model.window", "sliding_window"},
    {"model.rope_scaling.type", "rope_type"},
    {"model.rope_scaling.low", "low_freq_factor"},
    {"model.rope_scaling.high", "high_freq_factor"},
    {"model.rope_scaling.original", "original_max_position_embeddings"},

    // Pipelines.
    {"pipeline.stages",
     "num_stages pp pp_size pipeline_parallel_size pipeline_model_parallel_size world_size "
     "num_gpus gpus num_processes processes"},
    {"pipeline.schedule", "type kind pipeline_schedule"},
    {"pipeline.microbatches",
     "micro_batches num_microbatches n_microbatches chunks micro_batch_size "
     "train_micro_batch_size_per_gpu gradient_accumulation_steps accumulate_grad_batches"},
    {"pipeline.cuts", "split_points splits partition partition_method balance boundaries"},
    {"pipeline.threads", "num_threads workers num_workers"},
    {"pipeline.recompute",
     "activation_checkpointing gradient_checkpointing activation_checkpoint_interval"},
    {"pipeline.swap", "offload cpu_offload activation_offloading"},
    {"pipeline.deadline_seconds", "timeout"},
    {"pipeline.transport", "backend"},
    {"pipeline.slices", "num_slices"},

    // Compression.
    {"compression.activations", "forward fwd activation"},
    {"compression.gradients", "backward bwd grads"},
    {"compression.boundaries", "overrides cuts"},
    {"compression.warmup_epochs", "warmup"},
    {"compression.activations.codec", "compressor method algorithm type kind name"},
    {"compression.activations.bits", "num_bits n_bits"},
    {"compression.activations.ratio", "density sparsity fraction keep compression_ratio"},
    {"compression.activations.k", "top_k num_kept"},
    {"compression.activations.feedback", "error_feedback compensation residual"},
    {"compression.activations.scope", "granularity"},
    {"compression.activations.group", "group_size bucket_size"},
    {"compression.activations.block", "block_size"},
    {"compression.activations.rounding", "rounding_mode"},
    {"compression.activations.rank", "matrix_approximation_rank"},
    {"compression.activations.lossless", "entropy"},
    {"compression.activations.plugin", "library"},
    {"compression.activations.level", "schedule"},
    {"compression.activations.feedback.kind", "type name"},
    {"compression.bottleneck.kind", "type name"},
    {"compression.bottleneck.width", "channels dim"},

    // Intervals.
    {"evaluation.every", "eval_interval eval_every evaluation_strategy every_epochs interval"},
    {"evaluation.every_steps", "eval_steps"},
    {"checkpoint.every_epochs", "every interval save_every save_strategy"},
    {"checkpoint.every_steps", "save_steps save_interval"},
    {"checkpoint.keep", "save_total_limit max_to_keep"},
    {"checkpoint.best", "load_best_model_at_end metric_for_best_model"},
    {"early_stop.metric", "monitor measure metric_for_best_model"},
    {"early_stop.patience", "early_stopping_patience"},
    {"early_stop.min_delta", "early_stopping_threshold threshold"},
    {"metrics.error_every", "every interval"},
    {"restarts.max", "max_restarts retries max_retries"},
    {"restarts.window", "seconds"},

    // Layers of custom models.
    {"model.blocks.layers.kind", "type"},
    {"model.blocks.layers.out", "out_channels out_features channels features filters units width"},
    {"model.blocks.layers.kernel", "kernel_size"},
    {"model.blocks.layers.stride", "strides"},
    {"model.blocks.layers.vocabulary", "num_embeddings"},
    {"model.blocks.layers.context", "max_position_embeddings"},
    {"model.blocks.layers.epsilon", "eps"},
    {"model.blocks.layers.deviation", "std init_std"},
    {"model.blocks.layers.gelu", "approximate"},
    {"model.blocks.layers.heads", "num_heads"},
    {"model.blocks.layers.kv_heads", "num_kv_heads"},
    {"model.blocks.layers.rate", "p prob"},
    {"model.blocks.layers.shortcut", "skip"},
};

}  // namespace thinwire
