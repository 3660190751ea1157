"""What failed, once more and alone: with launches that wait, so that the call that fails is the one
that is named, and with the error logs of NVIDIA's libraries."""
import shlex

from commands import shown
from session import Failed

MOST_SECONDS = 20  # for a command
MOST_CHARACTERS = 1500  # of a command's output
TALKATIVE = {
    "CUDA_LAUNCH_BLOCKING": "1",
    "CUDNN_LOGLEVEL_DBG": "1",
    "CUDNN_LOGDEST_DBG": "stderr",
    "CUBLASLT_LOG_LEVEL": "1",
    "CUBLAS_LOGINFO_DBG": "1",
    "CUBLAS_LOGDEST_DBG": "stderr",
}


def again(session, commands):
    """What these (session.Again) say now, as far as the time goes: a list of texts."""
    texts = []
    for one in commands:
        if session.left() < 1:
            break
        try:
            done = session.run(one.command, env={**one.env, **TALKATIVE}, limit=MOST_SECONDS,
                               may_fail=True)
        except Failed as reason:
            texts.append(str(reason))
            continue
        what = "passes" if done.status == 0 else done.ending()
        said = done.out[max(0, done.out.find("[ RUN")):]  # without what GoogleTest says before
        texts.append(f"alone, with CUDA_LAUNCH_BLOCKING=1: {what}: "
                     f"{shown(shlex.join(done.command), 300)}\n{shown(said, MOST_CHARACTERS)}")
    return texts
